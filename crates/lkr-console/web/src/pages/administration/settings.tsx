// The settings that can be changed while the service runs.
import { useState } from "preact/hooks";
import { ApiError, Code, get, send } from "../../api/client";
import { isUnfinished, useLatestTask } from "../../api/follow_task";
import { t } from "../../i18n";
import { Button } from "../../ui/controls";
import { Foreign } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { Loading, Notice, say } from "../../ui/feedback";
import { Page } from "../../ui/page";
import { useResource } from "../../use_resource";
import { FailedPage } from "../errors";
import { FollowedTask } from "./followed_task";
import type { Schema } from "./settings/draft";
import { SettingsForm } from "./settings/form";
import { loadSettings, type Stored, storedOf } from "./settings/stored";
import { loadReadiness } from "./statistics/readiness";

export function SettingsPage() {
  const stored = useResource(loadSettings, []);
  const schema = useResource((signal) => get("/api/v1/settings/schema", { signal }), []);
  const failed = [stored, schema].find(({ error, data }) => error && data === undefined);
  const title = t("nav.settings");
  if (failed?.error) return <FailedPage error={failed.error} title={title} onRetry={failed.reload} />;
  if (stored.data === undefined || schema.data === undefined) return <Page title={title}><Loading rows={8} /></Page>;
  return (
    <Page title={title} actions={<Reset etag={stored.data.etag} onDone={stored.replace} onConflict={stored.reload} />}>
      <p class="muted">{t("settings.intro")}</p>
      <Reembedding etag={stored.data.etag} />
      <SettingsForm
        stored={stored.data}
        offers={schema.data}
        schema={schema.data.schema as unknown as Schema}
        onSaved={stored.replace}
        onReload={stored.reload}
      />
    </Page>
  );
}

/** The re-embedding that a changed embedding model started: how far it is, why it failed, or why it has not begun. */
function Reembedding({ etag }: { etag: string }) {
  const { data: task } = useLatestTask("reembed");
  const readiness = useResource(loadReadiness, [etag, task?.status]);
  // A task that a later change of the model has replaced ends as cancelled, which is no failure to tell.
  const hasFailed = task?.error !== undefined && task.error.code !== Code.conflict;
  if (task && (isUnfinished(task) || hasFailed)) {
    return <FollowedTask title={t("settings.reembedding")} heading="h2" hint={t("settings.reembedding_hint")} task={task} />;
  }
  const embedding = readiness.data?.embedding;
  if (!embedding || embedding.in_use === embedding.wanted) return null;
  return (
    <Notice kind="warning">
      <p>{t("settings.model_waits", { model: embedding.in_use ?? t("common.none") })}</p>
      {readiness.data?.checks?.embedder.reason && <p><Foreign>{readiness.data.checks.embedder.reason}</Foreign></p>}
    </Notice>
  );
}

interface ResetProps {
  etag: string;
  onDone: (stored: Stored) => void;
  onConflict: () => void;
}

function Reset({ etag, onDone, onConflict }: ResetProps) {
  const [isAsking, setAsking] = useState(false);
  const reset = async () => {
    try {
      onDone(await storedOf(await send("post", "/api/v1/settings/reset", { headers: { "If-Match": etag } })));
      say(t("settings.were_reset"));
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.conflict) onConflict();
      throw error;
    }
  };
  return (
    <>
      <Button variant="danger" onClick={() => setAsking(true)}>{t("settings.reset")}</Button>
      {isAsking && (
        <Confirm title={t("settings.reset_ask")} confirm={t("settings.reset")} onConfirm={reset} onClose={() => setAsking(false)}>
          <p>{t("settings.reset_text")}</p>
        </Confirm>
      )}
    </>
  );
}
