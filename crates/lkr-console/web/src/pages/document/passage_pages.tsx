// The pages of a passage: one that goes on over the end of a page is marked on each.
import { useRef } from "preact/hooks";
import { get } from "../../api/client";
import { t } from "../../i18n";
import type { Range } from "../../text";
import { Button } from "../../ui/controls";
import { useResource } from "../../use_resource";

interface PassageProps {
  docId: string;
  version: string;
  target: Range;
  /** The pages on which the passage may be, with the last one. */
  within: Range;
  page: number;
  onPage: (page: number) => void;
}

/** The most pages that are looked at: a passage is seldom longer. */
const MOST_PAGES = 8;

export function PassagePages({ docId, version, target, within, page, onPage }: PassageProps) {
  const opened = useRef({ target, page });
  if (opened.current.target.start !== target.start || opened.current.target.end !== target.end) opened.current = { target, page };
  const from = Math.min(within.end, Math.max(within.start, opened.current.page));
  const found = useResource(
    (signal) => pagesOf(from, within, (page) => isOn(docId, page, target, signal)),
    [docId, version, target.start, target.end, from],
  );
  const { data } = found;
  if (data === undefined || (data.start === data.end && data.start === page)) return null;
  const { start, end } = data;
  const goesOn = page >= start && page < end;
  const next = goesOn ? page + 1 : start;
  return (
    <p class="passage-pages" role="status">
      <span>{start === end ? t("document.passage_page", { page: start }) : t("document.passage_pages", { from: start, to: end })}</span>
      <Button variant="quiet" icon={goesOn ? "right" : "back"} onClick={() => onPage(next)}>
        {t(goesOn ? "document.passage_on" : "document.passage_back", { page: next })}
      </Button>
    </p>
  );
}

/** Whether a passage has a mark on a page. */
async function isOn(docId: string, page: number, target: Range, signal: AbortSignal): Promise<boolean> {
  const { boxes } = await get("/api/v1/documents/{doc_id}/pages/{n}/boxes", {
    path: { doc_id: docId, n: String(page) },
    query: { char_start: target.start, char_end: target.end },
    signal,
  });
  return boxes.length > 0;
}

/**
 * The pages of a passage, looked for around the page that was opened; nothing if it is not there. The pages are asked for one
 * after the other: the server draws few at once.
 */
export async function pagesOf(
  opened: number,
  within: Range,
  isOn: (page: number) => Promise<boolean>,
): Promise<Range | undefined> {
  if (within.start === within.end) return { ...within };
  const first = Math.max(within.start, opened - MOST_PAGES);
  const last = Math.min(within.end, opened + MOST_PAGES);
  const nearest = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  nearest.sort((a, b) => Math.abs(a - opened) - Math.abs(b - opened) || b - a);
  for (const page of nearest) {
    if (!(await isOn(page))) continue;
    let [start, end] = [page, page];
    while (end < last && (await isOn(end + 1))) end++;
    while (start > first && (await isOn(start - 1))) start--;
    return { start, end };
  }
  return undefined;
}
