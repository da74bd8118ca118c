// The settings that can be changed while the service runs. The form is made from the server's schema.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, Code, get, send } from "../../api/client";
import { isUnfinished, useLatestTask } from "../../api/follow_task";
import { t } from "../../i18n";
import { Button } from "../../ui/controls";
import { Foreign } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { ErrorMessage, Loading, Notice, say } from "../../ui/feedback";
import { Page, Section } from "../../ui/page";
import { useAction, useResource } from "../../use_resource";
import { FailedPage } from "../errors";
import { FollowedTask } from "./followed_task";
import { changesOf, countOf, forApi, isValues, type Schema, valueAt, type Value, type Values, withValue } from "./settings/draft";
import { type Offers, SettingField } from "./settings/fields";
import { ModelSettings, Trial } from "./settings/model";
import { loadReadiness } from "./statistics/readiness";

/** The settings with the tag that an update must name. */
interface Stored {
  values: Values;
  etag: string;
}

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

async function loadSettings(signal: AbortSignal): Promise<Stored> {
  return storedOf(await send("get", "/api/v1/settings", { signal }));
}

async function storedOf(response: Response): Promise<Stored> {
  const { data } = (await response.json()) as { data: Values };
  return { values: data, etag: response.headers.get("ETag") ?? "" };
}

interface FormProps {
  stored: Stored;
  offers: Offers;
  schema: Schema;
  onSaved: (stored: Stored) => void;
  onReload: () => void;
}

function SettingsForm({ stored, offers, schema, onSaved, onReload }: FormProps) {
  const [draft, setDraft] = useState(stored.values);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => setDraft(stored.values), [stored.etag]);
  const [isAsking, setAsking] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const changes = changesOf(stored.values, draft);
  const save = async () => {
    const response = await send("put", "/api/v1/settings", { body: forApi(changes), headers: { "If-Match": stored.etag } });
    onSaved(await storedOf(response));
    setSaved(true);
  };
  const action = useAction(save);
  // What was clicked goes away with the changes.
  const focusSave = () => form.current?.querySelector<HTMLElement>("[type=submit]")?.focus();
  const discard = () => {
    setDraft(stored.values);
    action.clear();
    focusSave();
  };
  const reload = () => {
    action.clear();
    onReload();
    focusSave();
  };
  const change = (path: string[], value: Value) => {
    setSaved(false);
    setDraft((draft) => withValue(draft, path, value));
  };
  const parts = { stored: stored.values, draft, schema, offers, change };
  const embedsAgain = changesVectors(changes);
  return (
    <form
      ref={form}
      class="settings"
      onSubmit={(event) => {
        event.preventDefault();
        if (embedsAgain) setAsking(true);
        else if (countOf(changes) > 0) void action.run();
      }}
    >
      <Section title={t("settings.models")}><Models {...parts} /></Section>
      <Section title={t("settings.parsers")}><Part {...parts} path={["parsers"]} /></Section>
      <Section title={t("settings.dedup")}><Part {...parts} path={["dedup"]} /></Section>
      <div class="save-bar">
        {embedsAgain && <Notice kind="warning">{t("settings.embeds_again")}</Notice>}
        {action.error?.code === Code.conflict ? <Conflict onReload={reload} /> : <ErrorMessage error={action.error} />}
        <SaveButtons count={countOf(changes)} isSaved={isSaved} isBusy={action.isBusy} onDiscard={discard} />
      </div>
      {isAsking && (
        <Confirm title={t("settings.embed_ask")} confirm={t("settings.embed_confirm")} onConfirm={action.run} onClose={() => setAsking(false)}>
          <div class="stack">
            <p>{t("settings.embeds_again")}</p>
            <Trial name="embed" entry={(valueAt(draft, ["models", "embed"]) ?? {}) as Values} isImmediate />
          </div>
        </Confirm>
      )}
    </form>
  );
}

/** Whether the changes make other vectors: another embedding model, or another place of it. */
function changesVectors(changes: Values): boolean {
  const embed = valueAt(changes, ["models", "embed"]);
  return isValues(embed) && ["provider", "model", "base_url"].some((key) => key in embed);
}

interface PartProps {
  stored: Values;
  draft: Values;
  schema: Schema;
  offers: Offers;
  change: (path: string[], value: Value) => void;
}

function Models({ stored, draft, schema, offers, change }: PartProps) {
  const models = valueAt(draft, ["models"]);
  const names = isValues(models) ? Object.keys(models) : [];
  const entryOf = (values: Values, name: string) => (valueAt(values, ["models", name]) ?? {}) as Values;
  return (
    <div class="models">
      {names.map((name) => (
        <ModelSettings
          key={name}
          name={name}
          schema={schemaAt(schema, ["models", name])}
          offers={offers}
          stored={entryOf(stored, name)}
          entry={entryOf(draft, name)}
          onChange={(key, value) => change(["models", name, key], value)}
        />
      ))}
    </div>
  );
}

/** All settings below a path, as they are named there. */
function Part({ path, ...parts }: PartProps & { path: string[] }) {
  return (
    <div class="card">
      <div class="fields">{leaves(valueAt(parts.draft, path), path).map((leaf) => <Leaf key={leaf.join(".")} path={leaf} {...parts} />)}</div>
    </div>
  );
}

function Leaf({ path, stored, draft, schema, offers, change }: PartProps & { path: string[] }) {
  return (
    <SettingField
      path={path}
      schema={schemaAt(schema, path)}
      offers={offers}
      stored={valueAt(stored, path)}
      value={valueAt(draft, path)}
      onChange={(value) => change(path, value)}
    />
  );
}

function leaves(value: Value | undefined, path: string[]): string[][] {
  if (!isValues(value)) return [path];
  return Object.entries(value).flatMap(([key, below]) => leaves(below, [...path, key]));
}

function schemaAt(schema: Schema, path: readonly string[]): Schema {
  return path.reduce((schema, key) => schema.properties?.[key] ?? {}, schema);
}

interface SaveProps {
  count: number;
  isSaved: boolean;
  isBusy: boolean;
  onDiscard: () => void;
}

function SaveButtons({ count, isSaved, isBusy, onDiscard }: SaveProps) {
  const rest = t(isSaved ? "settings.saved" : "settings.unchanged");
  return (
    <div class="spread">
      <p class="muted" role="status">{count === 0 ? rest : t("settings.changes", { n: count })}</p>
      <div class="row">
        {count > 0 && <Button onClick={onDiscard}>{t("settings.discard")}</Button>}
        {/* Never disabled: it would lose the focus when everything is saved. */}
        <Button variant="primary" type="submit" isBusy={isBusy}>{t("common.save")}</Button>
      </div>
    </div>
  );
}

/** Somebody else changed the settings since they were loaded. */
function Conflict({ onReload }: { onReload: () => void }) {
  return (
    <div class="error-message" role="alert">
      <p>{t("settings.conflict")}</p>
      <Button icon="retry" onClick={onReload}>{t("settings.reload")}</Button>
    </div>
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
