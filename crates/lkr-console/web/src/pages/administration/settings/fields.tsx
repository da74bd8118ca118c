// The fields of settings, made from their schema.
import { useEffect, useState } from "preact/hooks";
import { locale, t, tData } from "../../../i18n";
import { Checkbox, Select, TextField } from "../../../ui/controls";
import { KEY_MASK, type Schema, type Value } from "./draft";

/** The values that the server offers beside the schema, by the names of its lists. */
export type Offers = Record<string, unknown>;

interface FieldProps {
  path: readonly string[];
  schema: Schema;
  offers: Offers;
  stored: Value | undefined;
  value: Value | undefined;
  onChange: (value: Value) => void;
}

export function SettingField(props: FieldProps) {
  const { path, schema } = props;
  const key = path.at(-1);
  if (key === "api_key") return <KeyField {...props} />;
  if (schema.type === "array") return <CodesField {...props} />;
  const choices = choicesOf(props);
  if (choices !== undefined) return <ChoiceField {...props} choices={choices} />;
  return schema.type === "integer" ? <NumberField {...props} /> : <WordField {...props} />;
}

/** The name of a setting: of its whole path, else of its last part. */
export function labelOf(path: readonly string[]): string {
  const whole = path.join(".");
  const label = tData("setting", whole);
  return label === whole ? tData("setting", path.at(-1) ?? "") : label;
}

/** What a setting is for, in the person's language where the console knows it, else in the server's words. */
export function hintOf(path: readonly string[], schema: Schema): string {
  const whole = path.join(".");
  const last = path.at(-1) ?? "";
  for (const name of [whole, last]) {
    const hint = tData("setting_hint", name);
    if (hint !== name) return hint;
  }
  return schema.description ?? "";
}

function choicesOf({ path, schema, offers }: FieldProps): (string | null)[] | undefined {
  const key = path.at(-1);
  const list = (name: string) => (Array.isArray(offers[name]) ? (offers[name] as string[]) : undefined);
  if (key === "provider") return [null, ...(list("llm_providers") ?? [])];
  if (key === "plugin") return list(`${path.at(-2)}_plugins`) ?? schema.enum;
  if (key === "strategy") return list("dedup_strategies") ?? schema.enum;
  return schema.enum;
}

/** A choice that stands for null. */
const NULL_CHOICE = "none";

function ChoiceField({ path, schema, value, onChange, choices }: FieldProps & { choices: (string | null)[] }) {
  const key = path.at(-1) ?? "";
  const hasNull = choices.includes(null);
  const nameOf = (choice: string | null) => {
    if (choice === null) return t(path[1] === "embed" || path[1] === "rerank" ? "provider.in_process" : "provider.none");
    return tData(key, choice);
  };
  return (
    <Select
      label={labelOf(path)}
      hint={hintOf(path, schema)}
      value={value === null ? NULL_CHOICE : String(value)}
      choices={choices.map((choice) => ({ value: choice ?? NULL_CHOICE, label: nameOf(choice) }))}
      onChange={(chosen) => onChange(hasNull && chosen === NULL_CHOICE ? null : chosen)}
    />
  );
}

function NumberField({ path, schema, value, onChange }: FieldProps) {
  return (
    <TextField
      label={labelOf(path)}
      hint={hintOf(path, schema)}
      type="number"
      value={String(value ?? "")}
      required
      {...(schema.minimum !== undefined && { min: schema.minimum })}
      {...(schema.maximum !== undefined && { max: schema.maximum })}
      onInput={(text) => onChange(text === "" ? "" : Number(text))}
    />
  );
}

function WordField({ path, schema, value, onChange }: FieldProps) {
  return (
    <TextField
      label={labelOf(path)}
      hint={hintOf(path, schema)}
      type={path.at(-1) === "base_url" ? "url" : "text"}
      value={String(value ?? "")}
      {...(schema.maxLength !== undefined && { maxLength: schema.maxLength })}
      autocapitalize="none"
      autocomplete="off"
      spellcheck={false}
      onInput={onChange}
    />
  );
}

/** A key can be written but not read: what is typed replaces the stored one, which can also be removed. */
function KeyField({ path, stored, value, onChange }: FieldProps) {
  const isStored = stored === KEY_MASK;
  const typed = typeof value === "string" && value !== KEY_MASK ? value : "";
  return (
    <div class="stack tight">
      <TextField
        label={labelOf(path)}
        hint={t(isStored ? "settings.key_stored" : "settings.key_absent")}
        type="password"
        placeholder={isStored ? KEY_MASK : ""}
        value={typed}
        autocomplete="new-password"
        disabled={isStored && value === null}
        onInput={(text) => onChange(text === "" ? (stored ?? null) : text)}
      />
      {isStored && (
        <Checkbox
          label={t("settings.key_remove")}
          checked={value === null}
          onChange={(isRemoved) => onChange(isRemoved ? null : KEY_MASK)}
        />
      )}
    </div>
  );
}

/** A list of codes of languages, as one types them: `en, zh`. */
function CodesField({ path, schema, value, onChange }: FieldProps) {
  const codes = Array.isArray(value) ? value : [];
  const [text, setText] = useState(codes.join(", "));
  // The value may change by more than typing: when the settings are saved, discarded or loaded anew.
  useEffect(() => {
    if (parseCodes(text).join() !== codes.join()) setText(codes.join(", "));
  }, [codes.join()]);
  const known = new Set(schema.items?.enum ?? []);
  const unknown = codes.filter((code) => known.size > 0 && !known.has(code));
  const names = new Intl.DisplayNames(locale.value, { type: "language" });
  const namesText = codes.filter((code) => known.has(code)).map((code) => names.of(code) ?? code).join(", ");
  const type = (text: string) => {
    setText(text);
    onChange(parseCodes(text));
  };
  return (
    <TextField
      label={labelOf(path)}
      hint={namesText === "" ? hintOf(path, schema) : `${hintOf(path, schema)} ${namesText}`}
      error={unknown.length > 0 ? t("settings.unknown_codes", { codes: unknown.join(", ") }) : undefined}
      value={text}
      required
      autocapitalize="none"
      autocomplete="off"
      spellcheck={false}
      onInput={type}
    />
  );
}

function parseCodes(text: string): string[] {
  return text.toLowerCase().split(/[\s,;，、]+/).filter((code) => code !== "");
}
