// The model of a purpose, and whether it answers.
import { useEffect, useId, useState } from "preact/hooks";
import { post } from "../../../api/client";
import { t } from "../../../i18n";
import { duration } from "../../../i18n/format";
import { useAction } from "../../../use_resource";
import { Button } from "../../../ui/controls";
import { Badge, Foreign } from "../../../ui/data";
import { ErrorMessage } from "../../../ui/feedback";
import { forApi, isValues, type Schema, type Value, type Values } from "./draft";
import { hintOf, labelOf, type Offers, SettingField } from "./fields";

interface ModelProps {
  name: string;
  schema: Schema;
  offers: Offers;
  stored: Values;
  entry: Values;
  onChange: (key: string, value: Value) => void;
}

export function ModelSettings({ name, schema, offers, stored, entry, onChange }: ModelProps) {
  const path = ["models", name];
  const id = useId();
  // Without a provider nothing else of the entry is used.
  const keys = Object.keys(entry).filter((key) => key === "provider" || entry["provider"] !== null);
  const isMoved = entry["base_url"] !== stored["base_url"];
  const losesKey = stored["api_key"] !== null && isMoved && entry["api_key"] === stored["api_key"];
  return (
    <section class="card model" aria-labelledby={id}>
      <div>
        <h3 id={id}>{labelOf(path)}</h3>
        <p class="hint">{hintOf(path, schema)}</p>
      </div>
      <div class="fields">
        {keys.map((key) => (
          <SettingField
            key={key}
            path={[...path, key]}
            schema={schema.properties?.[key] ?? {}}
            offers={offers}
            stored={stored[key]}
            value={entry[key]}
            onChange={(value) => onChange(key, value)}
          />
        ))}
      </div>
      {losesKey && <p class="field-error" role="status">{t("settings.key_lost")}</p>}
      <Trial name={name} entry={entry} />
    </section>
  );
}

type Outcome = Awaited<ReturnType<typeof tryModel>>;

interface TrialProps {
  name: string;
  entry: Values;
  /** Tries without being asked. */
  isImmediate?: boolean;
}

/** Tries the entry as it is on the page, without saving it. */
export function Trial({ name, entry, isImmediate = false }: TrialProps) {
  const [outcome, setOutcome] = useState<Outcome>();
  const action = useAction(async () => {
    setOutcome(undefined);
    setOutcome(await tryModel(name, entry));
  });
  useEffect(() => {
    setOutcome(undefined);
    if (isImmediate) void action.run();
  }, [JSON.stringify(entry)]);
  return (
    <div class="trial">
      <Button icon="pulse" isBusy={action.isBusy} onClick={() => void action.run()}>
        {t("settings.try")}
        <span class="visually-hidden">: {labelOf(["models", name])}</span>
      </Button>
      <div role="status">
        {outcome && (
          <p class="row">
            <Badge kind={outcome.ok ? "ok" : "danger"}>{t(outcome.ok ? "settings.works" : "settings.fails")}</Badge>
            <span class="muted">{duration(outcome.latency_ms)}</span>
            <Foreign>{outcome.detail}</Foreign>
          </p>
        )}
      </div>
      <ErrorMessage error={action.error} />
    </div>
  );
}

function tryModel(name: string, entry: Values) {
  const models = forApi({ [name]: entry });
  return post("/api/v1/settings/test", { body: { models: isValues(models) ? models : {} } });
}
