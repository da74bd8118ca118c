// Pages of a list that the server continues by cursors.
import { useCallback, useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { type Resource, useResource } from "../use_resource";
import { Button } from "./controls";

interface PageOf<T> {
  items: T[];
  next_offset: string | null;
}

const ROWS_OF_A_PAGE = 50;

/** The parameters of a page that begins at a cursor. */
export function pageQuery(offset: string | undefined): { limit: number; offset?: string } {
  return { limit: ROWS_OF_A_PAGE, ...(offset !== undefined && { offset }) };
}

export interface Paged<T> extends Resource<PageOf<T>> {
  /** The number of the page, from 1. */
  page: number;
  next: (() => void) | undefined;
  previous: (() => void) | undefined;
}

/** A list, page by page. It begins again at its first page when one of `inputs` changes. */
export function usePages<T>(
  load: (offset: string | undefined, signal: AbortSignal) => Promise<PageOf<T>>,
  inputs: readonly unknown[],
): Paged<T> {
  const key = JSON.stringify(inputs);
  const [place, setPlace] = useState<{ key: string; cursors: string[] }>({ key, cursors: [] });
  const cursors = place.key === key ? place.cursors : [];
  const cursor = cursors.at(-1);
  const loaded = useResource(async (signal) => ({ key, cursor, rows: await load(cursor, signal) }), [key, cursor]);
  const data = loaded.data?.rows;
  // While another page is loaded, the data are those of the page before.
  const isThere = loaded.data?.key === key && loaded.data.cursor === cursor;
  const following = data?.next_offset;
  const go = (cursors: string[]) => setPlace({ key, cursors });
  // The rows of the last page may be gone.
  const isPast = isThere && data?.items.length === 0 && !following && cursors.length > 0;
  useEffect(() => {
    if (isPast) go(cursors.slice(0, -1));
  }, [isPast, cursor]);
  const replace = useCallback((rows: PageOf<T>) => loaded.replace({ key, cursor, rows }), [key, cursor]);
  return {
    ...loaded,
    data,
    replace,
    page: cursors.length + 1,
    next: following ? () => isThere && go([...cursors, following]) : undefined,
    previous: cursors.length > 0 ? () => go(cursors.slice(0, -1)) : undefined,
  };
}

export function Pager({ page, next, previous }: Pick<Paged<unknown>, "page" | "next" | "previous">) {
  if (next === undefined && previous === undefined) return null;
  return (
    <nav class="pager" aria-label={t("pager.label")}>
      <Button icon="back" disabled={previous === undefined} onClick={previous}>{t("pager.previous")}</Button>
      <span aria-live="polite">{t("pager.page", { page })}</span>
      <Button icon="right" disabled={next === undefined} onClick={next}>{t("pager.next")}</Button>
    </nav>
  );
}
