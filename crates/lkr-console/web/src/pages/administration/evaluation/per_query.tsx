// Each query's own figures: both ways of searching, run and measured by the browser.
import { useEffect, useRef, useState } from "preact/hooks";
import { post, urlOf, type ApiError } from "../../../api/client";
import { number, t } from "../../../i18n";
import { asApiError } from "../../../use_resource";
import { Button } from "../../../ui/controls";
import { Foreign, Progress } from "../../../ui/data";
import { ErrorMessage } from "../../../ui/feedback";
import { Section } from "../../../ui/page";
import { type Column, DataTable } from "../../../ui/table";
import { Difference, figure } from "./figures";
import type { GoldQuery, GoldSet } from "./gold";
import { judgesDocuments, ndcgAt10 } from "./measure";

/** A browser that runs more would keep a server busy for minutes. */
const MOST_QUERIES = 200;

interface Row {
  at: number;
  text: string;
  flat: number;
  layered: number;
}

interface Run {
  rows: Row[];
  total: number;
  isRunning: boolean;
  error?: ApiError | undefined;
}

export function PerQuery({ gold }: { gold: GoldSet }) {
  const queries = gold.queries.slice(0, MOST_QUERIES);
  const { run, start, cancel } = useRun(queries);
  const isCut = gold.queries.length > queries.length;
  const button = run?.isRunning ? (
    <Button icon="stop" onClick={cancel}>{t("common.cancel")}</Button>
  ) : (
    <Button icon="search" onClick={start}>{t("evaluation.per_query_start")}</Button>
  );
  return (
    <Section title={t("evaluation.per_query")} actions={button}>
      <p class="muted">
        {t("evaluation.per_query_hint")} {isCut && t("evaluation.per_query_cut", { n: MOST_QUERIES })}
      </p>
      {run?.isRunning && <Progress label={t("evaluation.per_query")} done={run.rows.length} total={run.total} />}
      <ErrorMessage error={run?.error} onRetry={start} />
      {run && run.rows.length > 0 && <Rows rows={run.rows} />}
    </Section>
  );
}

function useRun(queries: GoldQuery[]) {
  const [run, setRun] = useState<Run>();
  const controller = useRef<AbortController>(undefined);
  const cancel = () => {
    controller.current?.abort();
    setRun((run) => run && { ...run, isRunning: false });
  };
  useEffect(() => () => controller.current?.abort(), []);
  const start = async () => {
    controller.current?.abort();
    const own = new AbortController();
    controller.current = own;
    setRun({ rows: [], total: queries.length, isRunning: true });
    try {
      for (const [at, query] of queries.entries()) {
        const row = await measure(query, at, own.signal);
        setRun((run) => run && { ...run, rows: [...run.rows, row] });
      }
      setRun((run) => run && { ...run, isRunning: false });
    } catch (error) {
      if (!own.signal.aborted) setRun((run) => run && { ...run, isRunning: false, error: asApiError(error) });
    }
  };
  return { run, start: () => void start(), cancel };
}

async function measure(query: GoldQuery, at: number, signal: AbortSignal): Promise<Row> {
  const [flat, layered] = await Promise.all([search(query, "flat", signal), search(query, "layered", signal)]);
  return { at, text: query.text, flat, layered };
}

/** The requests of the server's own evaluation: ten documents, or as many chunks as may cover ten judged ranges. */
async function search(query: GoldQuery, mode: "flat" | "layered", signal: AbortSignal): Promise<number> {
  const documents = { group_by: "document" as const, top_k: 10 };
  const chunks = { group_by: "chunk" as const, top_k: 100 };
  const shape = judgesDocuments(query) ? documents : chunks;
  const { results } = await post("/api/v1/search", { body: { query: query.text, mode, ...shape }, signal });
  return ndcgAt10(query, results);
}

function Rows({ rows }: { rows: Row[] }) {
  const better = rows.filter((row) => row.layered > row.flat).length;
  const worse = rows.filter((row) => row.layered < row.flat).length;
  const sorted = [...rows].sort((a, b) => difference(b) - difference(a) || a.at - b.at);
  return (
    <>
      <p role="status">{t("evaluation.tally", { better, worse, same: rows.length - better - worse })}</p>
      <DataTable label={t("evaluation.per_query")} columns={columns()} rows={sorted} rowKey={({ at }) => String(at)} />
    </>
  );
}

function difference(row: Row): number {
  return row.layered - row.flat;
}

function columns(): Column<Row>[] {
  return [
    {
      label: t("evaluation.query"),
      kind: "header",
      cell: ({ text }) => <a href={urlOf("/", { query: { q: text } })}><Foreign>{text}</Foreign></a>,
    },
    { label: t("evaluation.number"), kind: "number", cell: ({ at }) => number(at + 1) },
    { label: t("evaluation.flat"), kind: "number", cell: ({ flat }) => figure(flat) },
    { label: t("evaluation.layered"), kind: "number", cell: ({ layered }) => figure(layered) },
    { label: t("evaluation.difference"), kind: "number", cell: (row) => <Difference value={difference(row)} /> },
  ];
}
