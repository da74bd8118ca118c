// The latency of searches over the last minutes: as a chart, and as a table for those who do not see it.
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { locale, number, t } from "../../../i18n";
import { theme } from "../../../preferences";
import { DataTable, type Column } from "../../../ui/table";
import type { Point } from "./live";
import { milliseconds } from "./units";

const HEIGHT = 220;

/** The least that the axis of times shows: the noise of quick searches would else look like a change. */
const LEAST_MS = 10;

export function LatencyChart({ points }: { points: Point[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const colors = useColors();
  const chart = useRef<uPlot | undefined>(undefined);
  const data = dataOf(points);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let isGone = false;
    void import("uplot").then(({ default: Plot }) => {
      const element = frame.current;
      if (isGone || element === null) return;
      chart.current = new Plot(optionsOf(element), latest.current, element);
    });
    const observer = new ResizeObserver(([entry]) => {
      if (entry) chart.current?.setSize({ width: Math.floor(entry.contentRect.width), height: HEIGHT });
    });
    if (frame.current) observer.observe(frame.current);
    return () => {
      isGone = true;
      observer.disconnect();
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [colors, locale.value]);
  useEffect(() => chart.current?.setData(data), [points]);
  return <div class="chart" ref={frame} role="img" aria-label={t("statistics.latency_chart")} />;
}

function dataOf(points: Point[]): uPlot.AlignedData {
  return [points.map(({ at }) => at), points.map(({ p50 }) => p50), points.map(({ p95 }) => p95)];
}

/** Changes with the theme, so that the chart is drawn again in its colours. */
function useColors(): string {
  const [isDark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const listener = () => setDark(query.matches);
    query.addEventListener("change", listener);
    return () => query.removeEventListener("change", listener);
  }, []);
  return `${theme.value} ${isDark}`;
}

function optionsOf(element: HTMLElement): uPlot.Options {
  const style = getComputedStyle(element);
  // A canvas takes a colour as it is: the browser resolves the variable for the element first.
  const color = (name: string) => {
    element.style.color = `var(${name})`;
    const resolved = style.color;
    element.style.color = "";
    return resolved;
  };
  const axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 },
    font: `12px ${style.fontFamily}`,
  };
  const times = new Intl.DateTimeFormat(locale.value, { timeStyle: "medium" });
  const ms = (value: number | null) => (value === null ? "–" : milliseconds(value));
  const series = (label: string, stroke: string): uPlot.Series => ({
    label,
    stroke,
    width: 2,
    points: { show: true, size: 5 },
    value: (_, value: number | null) => ms(value),
  });
  return {
    width: Math.floor(element.clientWidth),
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, most) => [0, Math.max(LEAST_MS, (most ?? 0) * 1.1)] } },
    axes: [
      { ...axis, space: 90, values: (_, ticks) => ticks.map((at) => times.format(at * 1000)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(ms) },
    ],
    series: [
      { label: t("statistics.time"), value: (_, at: number | null) => (at === null ? "–" : times.format(at * 1000)) },
      series(t("statistics.p50"), color("--accent")),
      series(t("statistics.p95"), color("--warning")),
    ],
  };
}

/** The same figures, the newest first. */
export function LatencyTable({ points }: { points: Point[] }) {
  return (
    <details>
      <summary>{t("statistics.as_table")}</summary>
      <DataTable
        label={t("statistics.latency")}
        columns={columns()}
        rows={[...points].reverse()}
        rowKey={({ at }) => String(at)}
      />
    </details>
  );
}

function columns(): Column<Point>[] {
  const times = new Intl.DateTimeFormat(locale.value, { timeStyle: "medium" });
  const ms = (value: number | null) => (value === null ? "–" : milliseconds(value));
  return [
    { label: t("statistics.time"), kind: "short", cell: ({ at }) => times.format(at * 1000) },
    { label: t("statistics.searches"), kind: "number", cell: ({ searches }) => number(searches) },
    { label: t("statistics.p50"), kind: "number", cell: ({ p50 }) => ms(p50) },
    { label: t("statistics.p95"), kind: "number", cell: ({ p95 }) => ms(p95) },
  ];
}
