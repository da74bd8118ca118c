import { Page } from "../ui/page";

export function TaskPage() {
  return <Page title="TaskPage">{null}</Page>;
}
