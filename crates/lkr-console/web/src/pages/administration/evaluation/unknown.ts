// Documents that a gold set judges and that are not there, such as those of another server.
import { get } from "../../../api/client";
import type { GoldSet } from "./gold";

/** What is known of the documents of a gold set. */
export interface Documents {
  /** How many different documents it names. */
  total: number;
  /** Those that are not there. */
  unknown: string[];
  /** How many queries have no other documents. */
  unanswerable: number;
  /** Whether all documents were looked for. */
  isWhole: boolean;
}

/** An address has a bounded length, and a list at most so many rows. */
const IDS_AT_ONCE = 100;

/** The most documents that are looked for: a set of more takes longer to check than to run. */
const MOST_IDS = 5000;

export async function checkDocuments({ queries }: GoldSet, signal: AbortSignal): Promise<Documents> {
  const ids = [...new Set(queries.flatMap(({ relevant }) => relevant.map(({ doc_id }) => doc_id)))];
  const asked = ids.slice(0, MOST_IDS);
  const known = new Set<string>();
  for (let first = 0; first < asked.length; first += IDS_AT_ONCE) {
    const where = JSON.stringify({ field: "doc_id", in: asked.slice(first, first + IDS_AT_ONCE) });
    const { items } = await get("/api/v1/documents", { query: { where, limit: IDS_AT_ONCE }, signal });
    for (const { doc_id } of items) known.add(doc_id);
  }
  const unknown = asked.filter((id) => !known.has(id));
  const isMissing = new Set(unknown);
  const unanswerable = queries.filter(({ relevant }) => relevant.every(({ doc_id }) => isMissing.has(doc_id))).length;
  return { total: ids.length, unknown, unanswerable, isWhole: asked.length === ids.length };
}
