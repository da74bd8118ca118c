import type { documents as english } from "./documents.en";

export const documents: Record<keyof typeof english, string> = {};
