import { Page } from "../ui/page";

export function TasksPage() {
  return <Page title="TasksPage">{null}</Page>;
}
