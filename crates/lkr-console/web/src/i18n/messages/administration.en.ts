import { access } from "./administration/access.en";
import { insight } from "./administration/insight.en";
import { system } from "./administration/system.en";

export const administration = { ...access, ...system, ...insight };
