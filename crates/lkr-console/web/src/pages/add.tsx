import { Page } from "../ui/page";

export function AddPage() {
  return <Page title="AddPage">{null}</Page>;
}
