import { Page } from "../ui/page";

export function DocumentsPage() {
  return <Page title="DocumentsPage">{null}</Page>;
}
