// Gold sets: queries with the documents, or the ranges of documents, that answer them. The limits are the server's.
import { t } from "../../../i18n";

export interface Relevant {
  doc_id: string;
  char_start?: number;
  char_end?: number;
}

export interface GoldQuery {
  text: string;
  relevant: Relevant[];
}

export interface GoldSet {
  queries: GoldQuery[];
}

export const SAMPLE = `{
  "queries": [
    {
      "text": "How thick is the ice?",
      "relevant": [{ "doc_id": "0190a5c2d3e47f8091a2b3c4d5e6f708" }]
    },
    {
      "text": "Who may enter the laboratory?",
      "relevant": [
        { "doc_id": "0190a5c2d3e47f8091a2b3c4d5e6f709", "char_start": 120, "char_end": 310 }
      ]
    }
  ]
}`;

const MOST_BYTES = 1024 * 1024;
const MOST_QUERIES = 10_000;
const MOST_CHARS = 2_000;
const MOST_RELEVANT = 1_000;

/** How many mistakes of a file are told: the others are mostly the same. */
const MOST_FAULTS = 5;

export type Checked = { gold: GoldSet } | { faults: string[] };

/** The gold set of a file, or what is wrong with it. */
export function readGold(text: string): Checked {
  if (new Blob([text]).size > MOST_BYTES) return { faults: [t("gold.too_large")] };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { faults: [t("gold.not_json", { reason: error instanceof Error ? error.message : String(error) })] };
  }
  const faults = faultsOf(value);
  return faults.length > 0 ? { faults } : { gold: value as GoldSet };
}

function faultsOf(value: unknown): string[] {
  const queries = isRecord(value) ? value["queries"] : undefined;
  if (!Array.isArray(queries)) return [t("gold.no_queries")];
  if (queries.length === 0 || queries.length > MOST_QUERIES) {
    return [t("gold.query_count", { n: queries.length, most: MOST_QUERIES })];
  }
  const faults: string[] = [];
  for (const [at, query] of queries.entries()) {
    faults.push(...queryFaults(query, `queries[${at}]`));
    if (faults.length > MOST_FAULTS) return [...faults.slice(0, MOST_FAULTS), t("gold.more_faults")];
  }
  return faults;
}

function queryFaults(query: unknown, place: string): string[] {
  if (!isRecord(query)) return [t("gold.not_object", { place })];
  const unknown = unknownKeys(query, ["text", "relevant"], place);
  const { text, relevant } = query;
  const length = typeof text === "string" ? Array.from(text.trim()).length : 0;
  const textFaults = length === 0 || length > MOST_CHARS ? [t("gold.text", { place: `${place}.text`, most: MOST_CHARS })] : [];
  if (!Array.isArray(relevant) || relevant.length === 0 || relevant.length > MOST_RELEVANT) {
    return [...unknown, ...textFaults, t("gold.relevant", { place: `${place}.relevant`, most: MOST_RELEVANT })];
  }
  const relevantFaults = relevant.flatMap((item, at) => itemFaults(item, `${place}.relevant[${at}]`));
  return [...unknown, ...textFaults, ...relevantFaults];
}

function itemFaults(item: unknown, place: string): string[] {
  if (!isRecord(item)) return [t("gold.not_object", { place })];
  const faults = unknownKeys(item, ["doc_id", "char_start", "char_end"], place);
  const { doc_id: id, char_start: start = null, char_end: end = null } = item;
  if (typeof id !== "string" || !/^[0-9a-f]{32}$/.test(id)) faults.push(t("gold.doc_id", { place: `${place}.doc_id` }));
  const isWhole = start === null && end === null;
  if (!isWhole && !(isOffset(start) && isOffset(end) && start < end)) faults.push(t("gold.range", { place }));
  return faults;
}

function unknownKeys(record: Record<string, unknown>, known: string[], place: string): string[] {
  return Object.keys(record)
    .filter((key) => !known.includes(key))
    .map((key) => t("gold.unknown_key", { place: `${place}.${key}` }));
}

function isOffset(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
