import type { Messages } from "./index";
import { accounts } from "./messages/accounts.zh";
import { administration } from "./messages/administration.zh";
import { common } from "./messages/common.zh";
import { documents } from "./messages/documents.zh";
import { search } from "./messages/search.zh";

export const zh: Messages = { ...common, ...accounts, ...search, ...documents, ...administration };
