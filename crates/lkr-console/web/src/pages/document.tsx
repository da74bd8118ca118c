import { Page } from "../ui/page";

export function DocumentPage() {
  return <Page title="DocumentPage">{null}</Page>;
}
