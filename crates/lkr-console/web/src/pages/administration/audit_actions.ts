// The kinds of changes by which the audit log can be filtered.

export const AUDIT_ACTIONS = [
  "account.create",
  "account.change",
  "account.password",
  "account.delete",
  "key.create",
  "key.delete",
  "settings.change",
  "settings.reset",
  "document.delete",
  "document.replace",
  "document.change",
  "space.create",
  "space.change",
  "space.delete",
  "space.member",
  "group.create",
  "group.delete",
  "group.member",
  "webhook.create",
  "webhook.delete",
  "backup.create",
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export function isAuditAction(action: string): action is AuditAction {
  return (AUDIT_ACTIONS as readonly string[]).includes(action);
}
