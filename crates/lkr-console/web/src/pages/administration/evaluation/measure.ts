// nDCG@10 of a query's results, as the server's evaluation has it (lkr-eval: gold.rs and measures.rs).
import type { GoldQuery, Relevant } from "./gold";

/** A chunk in a ranking, with its range in the document. */
export interface Found {
  doc_id: string;
  char_start: number;
  char_end: number;
}

const CUTOFF = 10;

/** Whether only whole documents are judged, so that a ranking of documents is measured. */
export function judgesDocuments(query: GoldQuery): boolean {
  return query.relevant.every((relevant) => !hasRange(relevant));
}

/** The normalised discounted cumulative gain at 10 (Järvelin and Kekäläinen 2002), with gains of 0 and 1. */
export function ndcgAt10(query: GoldQuery, ranking: readonly Found[]): number {
  const relevant = distinct(query.relevant.map(keyOf));
  const items = distinct(ranking.map((found) => itemOf(query, found)));
  const gains = items.map((item) => (relevant.includes(item) ? 1 : 0));
  const best = dcg(relevant.map(() => 1));
  return best === 0 ? 0 : dcg(gains) / best;
}

function dcg(gains: readonly number[]): number {
  return gains.slice(0, CUTOFF).reduce((sum, gain, at) => sum + gain / Math.log2(at + 2), 0);
}

/**
 * What a chunk counts as: the judged range that it overlaps most; else its document, if that is judged as a whole; else
 * itself, or its document where documents are ranked.
 */
function itemOf(query: GoldQuery, found: Found): string {
  const ofDocument = query.relevant.filter(({ doc_id }) => doc_id === found.doc_id);
  const judged = mostOverlapping(found, ofDocument) ?? ofDocument.find((relevant) => !hasRange(relevant));
  if (judged) return keyOf(judged);
  return judgesDocuments(query) ? found.doc_id : `${found.doc_id} chunk ${found.char_start}-${found.char_end}`;
}

/** The first of the ranges that share the most with a chunk; none if it overlaps none. */
function mostOverlapping(found: Found, relevant: readonly Relevant[]): Relevant | undefined {
  let best: { overlap: number; relevant: Relevant } | undefined;
  for (const one of relevant) {
    const overlap = Math.min(found.char_end, one.char_end ?? 0) - Math.max(found.char_start, one.char_start ?? 0);
    if (hasRange(one) && overlap > (best?.overlap ?? 0)) best = { overlap, relevant: one };
  }
  return best?.relevant;
}

function hasRange({ char_start, char_end }: Relevant): boolean {
  return char_start != null && char_end != null;
}

function keyOf(relevant: Relevant): string {
  return hasRange(relevant) ? `${relevant.doc_id} ${relevant.char_start}-${relevant.char_end}` : relevant.doc_id;
}

function distinct(items: readonly string[]): string[] {
  return [...new Set(items)];
}
