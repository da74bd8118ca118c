// When documents were added, and how large they are.
import type { Stats } from "../../../api/types";
import { locale, number, t } from "../../../i18n";
import { Bars } from "../../../ui/data";
import { DataTable, type Column } from "../../../ui/table";

const DAY_MS = 86_400_000;
const DAYS = 90;

interface Day {
  /** A date such as 2026-11-25. */
  day: string;
  documents: number;
}

/** Columns for the last days, of which most have a number only when they are pointed at; a table has them all. */
export function AddedByDay({ stats }: { stats: Stats }) {
  const days = lastDays(stats.added_by_day ?? {}, Date.now());
  const most = Math.max(1, ...days.map(({ documents }) => documents));
  const total = days.reduce((sum, { documents }) => sum + documents, 0);
  const dates = new Intl.DateTimeFormat(locale.value, { dateStyle: "medium", timeZone: "UTC" });
  const name = (day: string) => dates.format(Date.parse(day));
  const columns: Column<Day>[] = [
    { label: t("statistics.day"), kind: "short", cell: ({ day }) => name(day) },
    { label: t("layer.l1"), kind: "number", cell: ({ documents }) => number(documents) },
  ];
  const added = days.filter(({ documents }) => documents > 0);
  return (
    <>
      <p class="muted">{t("statistics.added_total", { n: total })}</p>
      <div class="columns" role="img" aria-label={t("statistics.added_total", { n: total })}>
        {days.map(({ day, documents }) => (
          <span key={day} title={`${name(day)}: ${number(documents)}`}>
            <span class={documents > 0 ? "column" : "column none"} style={{ height: `${(100 * documents) / most}%` }} />
          </span>
        ))}
      </div>
      <div class="spread muted columns-ends">
        <span>{name(days[0]?.day ?? "")}</span>
        <span>{name(days.at(-1)?.day ?? "")}</span>
      </div>
      {added.length > 0 && (
        <details>
          <summary>{t("statistics.as_table")}</summary>
          <DataTable label={t("statistics.by_day")} columns={columns} rows={added.reverse()} rowKey={({ day }) => day} />
        </details>
      )}
    </>
  );
}

/** The last days, the earliest first, those without documents included. */
function lastDays(counts: Record<string, number>, now: number): Day[] {
  return Array.from({ length: DAYS }, (_, at) => {
    const day = new Date(now - (DAYS - 1 - at) * DAY_MS).toISOString().slice(0, 10);
    return { day, documents: counts[day] ?? 0 };
  });
}

/** The months that are shown: the last that have documents. */
const MOST_MONTHS = 12;

/** The months in which documents were added, the latest first: also those before the days that are drawn. */
export function Months({ stats }: { stats: Stats }) {
  const names = new Intl.DateTimeFormat(locale.value, { year: "numeric", month: "long", timeZone: "UTC" });
  const months = Object.entries(stats.added_by_month ?? {}).sort(([a], [b]) => (a < b ? 1 : -1));
  const bars = months.slice(0, MOST_MONTHS).map(([month, value]) => ({ name: names.format(Date.parse(`${month}-01`)), value }));
  if (bars.length < 2) return null;
  return <Bars label={t("statistics.by_month")} bars={bars} />;
}

/** How many documents have up to so many chunks. */
export function Sizes({ stats }: { stats: Stats }) {
  const bars = (stats.sizes ?? []).map(({ max_chunks, documents }) => ({
    name: sizeName(max_chunks),
    value: documents,
  }));
  return <Bars label={t("statistics.by_size")} bars={bars} />;
}

function sizeName(most: number): string {
  const least = Math.floor(most / 2) + 1;
  return least >= most ? t("statistics.chunks", { n: most }) : t("statistics.chunks_range", { from: least, to: most });
}
