// The editor of conditions: rows of a field, an operator and a value.
import type { InputHTMLAttributes } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t, tData } from "../../i18n";
import { knownCategories, useShared } from "../../known";
import { Button, IconButton } from "../../ui/controls";
import { FIELDS, METADATA, MOST_CONDITIONS, isTime, needsValue, operatorsOf, withField, type Condition, type Operator } from "./conditions";

interface RowsProps {
  conditions: readonly Condition[];
  onChange: (conditions: Condition[]) => void;
}

const NEW: Condition = { field: METADATA, operator: "eq", value: "" };

export function ConditionRows({ conditions, onChange }: RowsProps) {
  const fields = useRef<HTMLFieldSetElement>(null);
  const count = useRef(conditions.length);
  // A row that was added gets the focus, and the button for adding when one was removed.
  useEffect(() => {
    const rows = fields.current?.querySelectorAll<HTMLElement>(".condition select:first-child");
    if (conditions.length > count.current) rows?.item(rows.length - 1)?.focus();
    if (conditions.length < count.current) fields.current?.querySelector<HTMLElement>(".add-condition > button")?.focus();
    count.current = conditions.length;
  }, [conditions.length]);
  const replace = (at: number, ...by: Condition[]) => onChange(conditions.toSpliced(at, 1, ...by));
  return (
    <fieldset ref={fields} class="conditions">
      <legend>{t("search.where")}</legend>
      {conditions.map((condition, at) => (
        <ConditionRow
          key={at}
          name={t("search.where.row", { n: at + 1 })}
          condition={condition}
          onChange={(changed) => replace(at, changed)}
          onRemove={() => replace(at)}
        />
      ))}
      <div class="add-condition">
        <Button icon="add" disabled={conditions.length >= MOST_CONDITIONS} onClick={() => onChange([...conditions, NEW])}>
          {t("search.where.add")}
        </Button>
      </div>
    </fieldset>
  );
}

interface RowProps {
  name: string;
  condition: Condition;
  onChange: (condition: Condition) => void;
  onRemove: () => void;
}

function ConditionRow({ name, condition, onChange, onRemove }: RowProps) {
  const { field, operator } = condition;
  const isMetadata = field.startsWith(METADATA);
  return (
    <div class="condition" role="group" aria-label={name}>
      <select
        aria-label={t("search.where.field")}
        value={isMetadata ? METADATA : field}
        onChange={(event) => onChange(withField(condition, event.currentTarget.value))}
      >
        {FIELDS.map((each) => (
          <option key={each} value={each}>{fieldName(each)}</option>
        ))}
      </select>
      {isMetadata && (
        <input
          type="text"
          aria-label={t("search.where.key")}
          placeholder={t("search.where.key")}
          value={field.slice(METADATA.length)}
          autocapitalize="none"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onChange({ ...condition, field: METADATA + event.currentTarget.value })}
        />
      )}
      <select
        aria-label={t("search.where.operator")}
        value={operator}
        onChange={(event) => onChange({ ...condition, operator: event.currentTarget.value as Operator })}
      >
        {operatorsOf(field).map((each) => (
          <option key={each} value={each}>{tData(isTime(field) ? "where_time" : "where", each)}</option>
        ))}
      </select>
      {needsValue(operator) && <ValueField condition={condition} onChange={onChange} />}
      <IconButton icon="close" label={t("search.where.remove")} onClick={onRemove} />
    </div>
  );
}

function ValueField({ condition, onChange }: Pick<RowProps, "condition" | "onChange">) {
  const { field, operator, value } = condition;
  const categories = useShared(knownCategories);
  const set = (value: string) => onChange({ ...condition, value });
  const label = t("search.where.value");
  if (field === "category" && (operator === "eq" || operator === "ne")) {
    const names = (categories.data ?? []).map(({ name }) => name);
    const all = value === "" || names.includes(value) ? names : [value, ...names];
    return (
      <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
        <option value="" />
        {all.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    );
  }
  // The library's type wants to know the input's type before the others.
  const attributes = { type: isTime(field) ? "date" : "text" } as InputHTMLAttributes<HTMLInputElement>;
  return (
    <input
      {...attributes}
      aria-label={label}
      placeholder={operator === "in" ? t("search.where.values_hint") : label}
      value={value}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => set(event.currentTarget.value)}
    />
  );
}

function fieldName(field: (typeof FIELDS)[number]): string {
  return tData("where_field", field === METADATA ? "metadata" : field);
}
