// Pages for what cannot be shown.
import { useLayoutEffect } from "preact/hooks";
import type { ApiError } from "../api/client";
import { Code } from "../api/client";
import { t } from "../i18n";
import { user } from "../session";
import { Button } from "../ui/controls";
import { Empty, ErrorMessage } from "../ui/feedback";
import { focusHeadingIfLost, Page } from "../ui/page";

export function MissingPage() {
  return (
    <Page title={t("missing.title")} isTitleHidden>
      <Empty icon="search" title={t("missing.title")}>
        <p>{t("missing.text")}</p>
        <a class="button primary" href="/">{t("missing.search")}</a>
      </Empty>
    </Page>
  );
}

export function ForbiddenPage() {
  // It may take the place of a page that was open.
  useLayoutEffect(focusHeadingIfLost, []);
  return (
    <Page title={t("forbidden.title")} isTitleHidden>
      <Empty icon="shield" title={t("forbidden.title")}>
        <p>{t("forbidden.text")}</p>
        <a class="button" href="/">{t("missing.search")}</a>
      </Empty>
    </Page>
  );
}

export function BrokenPage({ error }: { error: unknown }) {
  return (
    <Page title={t("broken.title")} isTitleHidden>
      <Empty icon="warning" title={t("broken.title")}>
        <p>{t("broken.text")}</p>
        <pre>{error instanceof Error ? error.message : String(error)}</pre>
        <Button variant="primary" onClick={() => location.reload()}>{t("broken.reload")}</Button>
      </Empty>
    </Page>
  );
}

/** The page in place of one whose scripts could not be loaded. */
export function UnloadedPage() {
  return (
    <Page title={t("unloaded.title")} isTitleHidden>
      <Empty icon="warning" title={t("unloaded.title")}>
        <p>{t("unloaded.text")}</p>
        <Button variant="primary" onClick={() => location.reload()}>{t("broken.reload")}</Button>
      </Empty>
    </Page>
  );
}

/** The page for an error that leaves nothing to show. */
export function FailedPage({ error, title, onRetry }: { error: ApiError; title: string; onRetry: () => void }) {
  if (error.code === Code.notFound) return <MissingPage />;
  if (error.code === Code.forbidden && user.value !== null) return <ForbiddenPage />;
  return (
    <Page title={title}>
      <ErrorMessage error={error} onRetry={onRetry} />
    </Page>
  );
}
