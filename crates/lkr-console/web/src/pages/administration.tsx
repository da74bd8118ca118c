// The pages of the administration: one chunk, loaded when the first of them is opened.
export { AuditPage } from "./administration/audit";
export { BackupPage } from "./administration/backup";
export { GroupPage } from "./administration/group";
export { GroupsPage } from "./administration/groups";
export { KeysPage } from "./administration/keys";
export { SettingsPage } from "./administration/settings";
export { SpacePage } from "./administration/space";
export { SpacesPage } from "./administration/spaces";
export { UsersPage } from "./administration/users";
export { WebhooksPage } from "./administration/webhooks";
export { WebhookPage } from "./administration/webhook";
export function TaxonomyPage() {
  return null;
}
export function StatisticsPage() {
  return null;
}
export function EvaluationPage() {
  return null;
}
