import type { administration as english } from "./administration.en";

export const administration: Record<keyof typeof english, string> = {};
