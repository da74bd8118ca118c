// Conditions on the fields of documents: as rows that a person edits, as the address has them, and as the API takes them.
import type { Expression } from "../../api/types";

/** A row. It may lack its value while it is being typed. */
export interface Condition {
  /** A field of documents, or `metadata.` and a key. */
  field: string;
  operator: Operator;
  value: string;
}

export type Operator = (typeof TEXT_OPERATORS)[number] | (typeof TIME_OPERATORS)[number];

export const METADATA = "metadata.";

export const FIELDS = [
  "title",
  "source",
  "category",
  "language",
  "created_by",
  "created_at",
  "updated_at",
  "content_type",
  "doc_id",
  METADATA,
] as const;

const TEXT_OPERATORS = ["eq", "ne", "in", "prefix", "gt", "gte", "lt", "lte", "exists", "absent"] as const;

/** A date is its midnight where the person is, so that other comparisons would mislead. */
const TIME_OPERATORS = ["gte", "lt"] as const;

/** The most rows: the API takes expressions of 64 parts. */
export const MOST_CONDITIONS = 20;

export function isTime(field: string): boolean {
  return field.endsWith("_at") && !field.startsWith(METADATA);
}

export function operatorsOf(field: string): readonly Operator[] {
  return isTime(field) ? TIME_OPERATORS : TEXT_OPERATORS;
}

export function needsValue(operator: Operator): boolean {
  return operator !== "exists" && operator !== "absent";
}

/** Whether a row says enough to be searched by. */
export function isComplete({ field, operator, value }: Condition): boolean {
  return field.trim() !== METADATA && (!needsValue(operator) || valuesOf(operator, value).length > 0);
}

/** The row with another field. An operator that the field lacks becomes one that it has, without a value of another kind. */
export function withField(condition: Condition, field: string): Condition {
  const operators = operatorsOf(field);
  const [first] = operators;
  const operator = operators.includes(condition.operator) ? condition.operator : (first ?? "eq");
  return { field, operator, value: isTime(field) === isTime(condition.field) ? condition.value : "" };
}

export function expressionOf({ field: typed, operator, value }: Condition): Expression {
  const field = typed.startsWith(METADATA) ? METADATA + typed.slice(METADATA.length).trim() : typed;
  const [first = ""] = valuesOf(operator, value);
  switch (operator) {
    case "exists":
    case "absent":
      return { field, exists: operator === "exists" };
    case "ne":
      return { not: { field, eq: first } };
    case "in":
      return { field, in: valuesOf(operator, value) };
    case "eq":
      return { field, eq: first };
    case "prefix":
      return { field, prefix: first };
    default:
      return { field, [operator]: isTime(field) ? instantOf(first) : numberOr(first) } as Expression;
  }
}

/** The instant at which a date begins where the person is; the text itself if it is no date. Lists show times of that place, too. */
export function instantOf(date: string): string {
  const midnight = new Date(`${date}T00:00`);
  return Number.isNaN(midnight.getTime()) ? date : midnight.toISOString();
}

function valuesOf(operator: Operator, value: string): string[] {
  const values = operator === "in" ? value.split(/[,，、]/) : [value];
  return values.map((value) => value.trim()).filter((value) => value !== "");
}

/** A number is compared by value, another text by its letters. */
function numberOr(text: string): string | number {
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** The rows as an address has them. */
export function writeConditions(conditions: readonly Condition[]): string {
  if (conditions.length === 0) return "";
  return JSON.stringify(conditions.map(({ field, operator, value }) => [field, operator, value]));
}

/** The rows of an address; what is no row is left out. */
export function parseConditions(text: string): Condition[] {
  let rows: unknown;
  try {
    rows = JSON.parse(text === "" ? "[]" : text);
  } catch {
    return [];
  }
  return Array.isArray(rows) ? rows.flatMap(conditionOf).slice(0, MOST_CONDITIONS) : [];
}

function conditionOf(row: unknown): Condition[] {
  if (!Array.isArray(row) || row.length !== 3 || !row.every((part) => typeof part === "string")) return [];
  const [field, operator, value] = row as [string, string, string];
  const isKnown = field.startsWith(METADATA) || FIELDS.some((known) => known === field);
  const known = operatorsOf(field).find((known) => known === operator);
  return isKnown && known ? [{ field, operator: known, value }] : [];
}
