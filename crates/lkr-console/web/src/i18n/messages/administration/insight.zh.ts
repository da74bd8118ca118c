import type { insight as english } from "./insight.en";

export const insight: Record<keyof typeof english, string> = {};
