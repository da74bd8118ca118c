// Lists as a whole, for choices and suggestions.

/** The most rows that are loaded: a person does not choose among more. */
const MOST_ROWS = 1000;
const ROWS_OF_A_PAGE = 100;

interface PageOf<T> {
  items: T[];
  next_offset: string | null;
}

/** The rows of a list, from its first page on. */
export async function listAll<T>(
  load: (query: { limit: number; offset?: string }) => Promise<PageOf<T>>,
): Promise<T[]> {
  const rows: T[] = [];
  let offset: string | null = null;
  do {
    const page: PageOf<T> = await load({ limit: ROWS_OF_A_PAGE, ...(offset !== null && { offset }) });
    rows.push(...page.items);
    offset = page.next_offset;
  } while (offset !== null && rows.length < MOST_ROWS);
  return rows;
}
