// What a part of a page shows of its data while that loads, fails, or may not be read.
import type { ComponentChildren } from "preact";
import { Code } from "../api/client";
import { t } from "../i18n";
import type { Resource } from "../use_resource";
import { Empty, ErrorMessage, Loading } from "./feedback";

interface LoadedProps<T> {
  resource: Resource<T>;
  rows?: number;
  children: (data: T) => ComponentChildren;
}

export function Loaded<T>({ resource, rows = 4, children }: LoadedProps<T>) {
  const { data, error, isLoading, reload } = resource;
  if (error?.code === Code.forbidden) {
    return <Empty icon="shield" title={t("forbidden.title")}><p>{t("forbidden.text")}</p></Empty>;
  }
  return (
    <>
      <ErrorMessage error={error} onRetry={reload} />
      {data === undefined ? isLoading && <Loading rows={rows} /> : children(data)}
    </>
  );
}
