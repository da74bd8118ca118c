// What is searched: the state of the page, as the address holds it and as the API takes it.
import type { Expression } from "../../api/types";
import { expressionOf, instantOf, isComplete, parseConditions, writeConditions, type Condition } from "./conditions";

export interface SearchState {
  q: string;
  spaces: string[];
  category: string;
  source: string;
  language: string;
  /** Dates such as 2026-11-25; empty for none. */
  from: string;
  to: string;
  conditions: Condition[];
  isGrouped: boolean;
  isFlat: boolean;
  isSummarized: boolean;
  count: number;
}

export const FIRST_COUNT = 10;
export const MOST_RESULTS = 100;

export const EMPTY: SearchState = {
  q: "",
  spaces: [],
  category: "",
  source: "",
  language: "",
  from: "",
  to: "",
  conditions: [],
  isGrouped: false,
  isFlat: false,
  isSummarized: false,
  count: FIRST_COUNT,
};

export function parseState(query: Record<string, string>): SearchState {
  const count = Number(query["n"]);
  return {
    q: query["q"] ?? "",
    spaces: (query["space"] ?? "").split(",").filter((space) => space !== ""),
    category: query["category"] ?? "",
    source: query["source"] ?? "",
    language: query["language"] ?? "",
    from: query["from"] ?? "",
    to: query["to"] ?? "",
    conditions: [...parseConditions(query["where"] ?? ""), ...formerConditions(query["metadata"] ?? "")],
    isGrouped: query["group"] === "document",
    isFlat: query["mode"] === "flat",
    isSummarized: query["summary"] === "1",
    count: Number.isInteger(count) && count > 0 ? Math.min(count, MOST_RESULTS) : FIRST_COUNT,
  };
}

/** The conditions of an address of the first version, which had `key=value`, one a line. */
function formerConditions(text: string): Condition[] {
  return text.split("\n").flatMap((line) => {
    const [key = "", ...value] = line.split("=");
    const field = `metadata.${key.trim()}`;
    return key.trim() === "" || value.length === 0 ? [] : [{ field, operator: "eq" as const, value: value.join("=").trim() }];
  });
}

/** The address of a state. */
export function stateHref(state: SearchState): string {
  const query = new URLSearchParams();
  const add = (name: string, value: string) => value !== "" && query.set(name, value);
  add("q", state.q);
  add("space", state.spaces.join(","));
  add("category", state.category);
  add("source", state.source);
  add("language", state.language);
  add("from", state.from);
  add("to", state.to);
  add("where", writeConditions(state.conditions));
  add("group", state.isGrouped ? "document" : "");
  add("mode", state.isFlat ? "flat" : "");
  add("summary", state.isSummarized ? "1" : "");
  add("n", state.count === FIRST_COUNT ? "" : String(state.count));
  const text = query.toString();
  return text === "" ? "/" : `/?${text}`;
}

/** How many filters a state has. */
export function filterCount(state: SearchState): number {
  const texts = [state.category, state.source, state.language, state.from, state.to].filter((text) => text.trim() !== "");
  return texts.length + state.conditions.filter(isComplete).length + (state.spaces.length > 0 ? 1 : 0);
}

export interface SearchBody {
  query: string;
  top_k: number;
  spaces?: string[];
  mode?: "flat";
  group_by?: "document";
  where?: Expression;
}

/** The body of the request. */
export function searchBody(state: SearchState): SearchBody {
  const conditions: Expression[] = [];
  if (state.category !== "") conditions.push({ field: "category", eq: state.category });
  if (state.source.trim() !== "") conditions.push({ field: "source", prefix: state.source.trim() });
  if (state.language.trim() !== "") conditions.push({ field: "language", eq: state.language.trim() });
  if (state.from !== "") conditions.push({ field: "updated_at", gte: instantOf(state.from) });
  if (state.to !== "") conditions.push({ field: "updated_at", lt: instantOf(dayAfter(state.to)) });
  conditions.push(...state.conditions.filter(isComplete).map(expressionOf));
  const [only] = conditions;
  return {
    query: state.q.trim(),
    top_k: state.count,
    ...(state.spaces.length > 0 && { spaces: state.spaces }),
    ...(state.isFlat && { mode: "flat" }),
    ...(state.isGrouped && { group_by: "document" }),
    ...(only && { where: conditions.length === 1 ? only : { and: conditions } }),
  };
}

function dayAfter(date: string): string {
  const next = new Date(`${date}T00:00:00Z`);
  if (Number.isNaN(next.getTime())) return date;
  next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString().slice(0, 10);
}
