// The pages of the administration: one chunk, loaded when the first of them is opened.
export { GroupPage } from "./administration/group";
export { GroupsPage } from "./administration/groups";
export { KeysPage } from "./administration/keys";
export { SettingsPage } from "./administration/settings";
export { SpacePage } from "./administration/space";
export { SpacesPage } from "./administration/spaces";
export { UsersPage } from "./administration/users";
export function TaxonomyPage() {
  return null;
}
export function StatisticsPage() {
  return null;
}
export function EvaluationPage() {
  return null;
}
export function WebhooksPage() {
  return null;
}
export function WebhookPage() {
  return null;
}
export function AuditPage() {
  return null;
}
export function BackupPage() {
  return null;
}
