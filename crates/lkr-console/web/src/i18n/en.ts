import { accounts } from "./messages/accounts.en";
import { administration } from "./messages/administration.en";
import { common } from "./messages/common.en";
import { documents } from "./messages/documents.en";
import { search } from "./messages/search.en";

export const en = { ...common, ...accounts, ...search, ...documents, ...administration };
