export function SpacesPage() {
  return null;
}
export function SpacePage() {
  return null;
}
export function KeysPage() {
  return null;
}
export function UsersPage() {
  return null;
}
export function GroupsPage() {
  return null;
}
export function GroupPage() {
  return null;
}
export function SettingsPage() {
  return null;
}
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
