// The pages of the administration: one chunk, loaded when the first of them is opened.
export { AuditPage } from "./administration/audit";
export { BackupPage } from "./administration/backup";
export { EvaluationPage } from "./administration/evaluation";
export { GroupPage } from "./administration/group";
export { GroupsPage } from "./administration/groups";
export { KeysPage } from "./administration/keys";
export { SettingsPage } from "./administration/settings";
export { SpacePage } from "./administration/space";
export { SpacesPage } from "./administration/spaces";
export { StatisticsPage } from "./administration/statistics";
export { TaxonomyPage } from "./administration/taxonomy";
export { UsersPage } from "./administration/users";
export { WebhookPage } from "./administration/webhook";
export { WebhooksPage } from "./administration/webhooks";
