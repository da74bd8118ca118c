import type { system as english } from "./system.en";

export const system: Record<keyof typeof english, string> = {};
