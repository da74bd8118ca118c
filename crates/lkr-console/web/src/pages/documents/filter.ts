// What the list of documents shows, as the address has it and as the API takes it.
import { listAll } from "../../api/all";
import { get } from "../../api/client";
import type { Expression } from "../../api/types";

export interface Filter {
  /** The beginning of the title. */
  q: string;
  space: string;
  category: string;
  /** The whole source. */
  source: string;
}

/** The most documents that are named in one request. */
export const MOST_IDS = 1000;

export function parseFilter(query: Record<string, string>): Filter {
  return {
    q: query["q"] ?? "",
    space: query["space"] ?? "",
    category: query["category"] ?? "",
    source: query["source"] ?? "",
  };
}

/** The parts of a filter that are not empty. */
export function given(filter: Filter): Partial<Filter> & Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
}

/** The documents with these ids. */
export function amongIds(ids: readonly string[]): Expression {
  return { field: "doc_id", in: [...ids] };
}

/**
 * What a filter shows. Titles are compared regardless of case, which expressions do not: then the documents that are there
 * now are named, and the rest is told by `isWhole`.
 */
export async function expressionOf(filter: Filter): Promise<{ where: Expression; isWhole: boolean }> {
  const { q, ...fields } = filter;
  if (q === "") return { where: all(fields), isWhole: true };
  const found = await listAll((page) => get("/api/v1/documents", { query: { ...given(filter), ...page } }));
  const ids = found.slice(0, MOST_IDS).map(({ doc_id }) => doc_id);
  // An expression names at least one document; none has this id.
  return { where: amongIds(ids.length === 0 ? ["none"] : ids), isWhole: found.length < MOST_IDS };
}

/** The documents whose fields have these values. */
export function all(fields: Omit<Filter, "q">): Expression {
  const conditions = Object.entries(fields)
    .filter(([, value]) => value !== "")
    .map(([field, value]): Expression => ({ field, eq: value }));
  const [only, second] = conditions;
  return only !== undefined && second === undefined ? only : { and: conditions };
}
