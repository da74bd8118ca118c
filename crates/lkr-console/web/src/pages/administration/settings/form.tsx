// The form of the settings, made from the server's schema.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Code, send } from "../../../api/client";
import { t } from "../../../i18n";
import { Button } from "../../../ui/controls";
import { Confirm } from "../../../ui/dialog";
import { ErrorMessage, Notice } from "../../../ui/feedback";
import { useUnsaved } from "../../../ui/leaving";
import { Section } from "../../../ui/page";
import { useAction } from "../../../use_resource";
import { changesOf, countOf, forApi, isValues, type Schema, valueAt, type Value, type Values, withValue } from "./draft";
import { type Offers, SettingField } from "./fields";
import { ModelSettings, Trial } from "./model";
import { type Stored, storedOf } from "./stored";

interface FormProps {
  stored: Stored;
  offers: Offers;
  schema: Schema;
  onSaved: (stored: Stored) => void;
  onReload: () => void;
}

export function SettingsForm({ stored, offers, schema, onSaved, onReload }: FormProps) {
  const [draft, setDraft] = useState(stored.values);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => setDraft(stored.values), [stored.etag]);
  const [isAsking, setAsking] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const changes = changesOf(stored.values, draft);
  useUnsaved(countOf(changes) > 0);
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
        <Confirm
          title={t("settings.embed_ask")}
          confirm={t("settings.embed_confirm")}
          onConfirm={action.run}
          onClose={() => setAsking(false)}
        >
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
      <div class="fields">
        {leaves(valueAt(parts.draft, path), path).map((leaf) => <Leaf key={leaf.join(".")} path={leaf} {...parts} />)}
      </div>
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
