// The addresses of the console. The server answers its page for each of them (see lkr-console, `is_page`), so that every
// address can be opened directly.
import type { IconName } from "./ui/icon";
import type { MessageKey } from "./i18n";

export interface Place {
  href: string;
  label: MessageKey;
  icon: IconName;
}

/** What everybody sees in the navigation. */
export const PLACES: Place[] = [
  { href: "/", label: "nav.search", icon: "search" },
  { href: "/documents", label: "nav.documents", icon: "documents" },
  { href: "/spaces", label: "nav.spaces", icon: "space" },
];

/** What accounts see besides. */
export const ACCOUNT_PLACES: Place[] = [
  { href: "/add", label: "nav.add", icon: "upload" },
  { href: "/tasks", label: "nav.tasks", icon: "list" },
  { href: "/keys", label: "nav.keys", icon: "key" },
];

/** What admins see besides. */
export const ADMIN_PLACES: Place[] = [
  { href: "/admin/users", label: "nav.users", icon: "user" },
  { href: "/admin/groups", label: "nav.groups", icon: "group" },
  { href: "/admin/settings", label: "nav.settings", icon: "settings" },
  { href: "/admin/taxonomy", label: "nav.taxonomy", icon: "tag" },
  { href: "/admin/statistics", label: "nav.statistics", icon: "chart" },
  { href: "/admin/evaluation", label: "nav.evaluation", icon: "flask" },
  { href: "/admin/webhooks", label: "nav.webhooks", icon: "webhook" },
  { href: "/admin/audit", label: "nav.audit", icon: "shield" },
  { href: "/admin/backup", label: "nav.backup", icon: "archive" },
];

/** The address of a document, at a range of code points of its text. */
export function documentHref(docId: string, range?: { start: number; end: number }, page?: number | null): string {
  const query = new URLSearchParams();
  if (range) query.set("at", `${range.start}-${range.end}`);
  if (page) query.set("page", String(page));
  const text = query.toString();
  return `/documents/${docId}${text === "" ? "" : `?${text}`}`;
}

/** The address where documents are added, to a space if one is named. */
export function addHref(space = ""): string {
  return space === "" ? "/add" : `/add?space=${encodeURIComponent(space)}`;
}

export function taskHref(taskId: string): string {
  return `/tasks/${taskId}`;
}

export function spaceHref(space: string): string {
  return `/spaces/${encodeURIComponent(space)}`;
}
