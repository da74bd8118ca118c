import { access } from "./administration/access.zh";
import { insight } from "./administration/insight.zh";
import { system } from "./administration/system.zh";
import type { administration as english } from "./administration.en";

export const administration: Record<keyof typeof english, string> = { ...access, ...system, ...insight };
