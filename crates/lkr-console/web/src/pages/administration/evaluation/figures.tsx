// The figures of an evaluation: layered against flat.
import type { Task } from "../../../api/types";
import { locale, number, t } from "../../../i18n";
import { type Column, DataTable } from "../../../ui/table";

type Evaluated = Extract<NonNullable<Task["result"]>, { flat: unknown }>;

const MEASURES = ["ndcg_at_10", "recall_at_10", "mrr_at_10"] as const;

const THREE_DIGITS = { minimumFractionDigits: 3, maximumFractionDigits: 3 };

interface Row {
  measure: (typeof MEASURES)[number];
  flat: number;
  layered: number;
}

export function evaluated(task: Task): Evaluated | undefined {
  return task.result && "flat" in task.result ? task.result : undefined;
}

export function Figures({ result }: { result: Evaluated }) {
  const rows = MEASURES.map((measure): Row => ({ measure, flat: result.flat[measure], layered: result.layered[measure] }));
  return (
    <div class="stack tight">
      <p class="muted">{t("evaluation.of_queries", { n: result.layered.queries })}</p>
      <DataTable label={t("evaluation.result")} columns={columns()} rows={rows} rowKey={({ measure }) => measure} />
      <dl class="measures hint">
        {MEASURES.map((measure) => (
          <div key={measure}>
            <dt>{t(`measure.${measure}`)}</dt>
            <dd>{t(`measure_hint.${measure}`)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function columns(): Column<Row>[] {
  return [
    { label: t("evaluation.measure"), kind: "header", cell: ({ measure }) => t(`measure.${measure}`) },
    { label: t("evaluation.flat"), kind: "number", cell: ({ flat }) => <Figure value={flat} /> },
    { label: t("evaluation.layered"), kind: "number", cell: ({ layered }) => <Figure value={layered} isStrong /> },
    { label: t("evaluation.difference"), kind: "number", cell: ({ flat, layered }) => <Difference value={layered - flat} /> },
  ];
}

/** A figure from 0 to 1 with its bar. */
function Figure({ value, isStrong = false }: { value: number; isStrong?: boolean }) {
  return (
    <span class="figure">
      <progress class={isStrong ? "" : "plain"} max={1} value={value} aria-hidden="true" />
      {figure(value)}
    </span>
  );
}

/** A difference with its sign. Colour alone would not be enough. */
export function Difference({ value }: { value: number }) {
  const rounded = Math.round(value * 1000) / 1000;
  const kind = rounded > 0 ? "gain" : rounded < 0 ? "loss" : "muted";
  const format = new Intl.NumberFormat(locale.value, { ...THREE_DIGITS, signDisplay: "exceptZero" });
  return <span class={kind}>{format.format(rounded)}</span>;
}

export function figure(value: number): string {
  return value === 0 ? number(0) : new Intl.NumberFormat(locale.value, THREE_DIGITS).format(value);
}
