// Files that the server refused, kept while the tab is open: such a file leaves no task behind. Names and reasons are kept,
// nothing of the files themselves.
import { effect, signal } from "@preact/signals";
import { user } from "../../session";

export interface Refused {
  /** The path within the folder, or the file's name. */
  name: string;
  reason: string;
  /** The space to which it was sent, and whether it was to replace a document of the same path. */
  space: string;
  isReplacing: boolean;
}

/** Files that were refused before this page was loaded. */
export const refusedBefore = signal<Refused[]>([]);

const KEY_PREFIX = "lkr.refused.";

/** The most files that are kept: a browser limits what a page may store. */
const MOST_KEPT = 500;

const keyOf = (username: string) => KEY_PREFIX + username;

let owner: string | undefined;

// Another account in the same tab sees nothing of the files. While a session has ended, its files stay.
effect(() => {
  const username = user.value?.username;
  if (username === undefined || username === owner) return;
  owner = username;
  refusedBefore.value = parseRefused(sessionStorage.getItem(keyOf(username)));
});

/** Keeps these files until the tab is closed or the person signs out. */
export function keepRefused(files: readonly Refused[]): void {
  if (owner === undefined) return;
  if (files.length === 0) sessionStorage.removeItem(keyOf(owner));
  else sessionStorage.setItem(keyOf(owner), JSON.stringify(files.slice(-MOST_KEPT)));
}

/** The files that a text of the storage names; none if it is damaged. */
export function parseRefused(text: string | null): Refused[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter(isRefused) : [];
  } catch {
    return [];
  }
}

function isRefused(value: unknown): value is Refused {
  if (typeof value !== "object" || value === null) return false;
  const { name, reason, space, isReplacing } = value as Record<string, unknown>;
  return [name, reason, space].every((text) => typeof text === "string") && typeof isReplacing === "boolean";
}
