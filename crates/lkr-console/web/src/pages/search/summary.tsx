// The summary of a search as it is written, with markers that lead to their passages.
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../../api/client";
import { postStream } from "../../api/stream";
import type { SearchResult, Summary } from "../../api/types";
import { t } from "../../i18n";
import { ErrorMessage, Notice } from "../../ui/feedback";
import { Section } from "../../ui/page";
import { asApiError } from "../../use_resource";
import type { SearchBody } from "./state";

interface Written {
  text: string;
  summary: Summary | undefined;
  warnings: string[];
  error: ApiError | undefined;
}

const NOTHING: Written = { text: "", summary: undefined, warnings: [], error: undefined };

export function SummaryOfResults({ body, results }: { body: SearchBody; results: SearchResult[] }) {
  const written = useSummary(body);
  const text = written.summary?.text ?? written.text;
  const isDone = written.summary !== undefined || written.error !== undefined;
  return (
    <Section title={t("search.summary")}>
      <div class="summary card" aria-busy={!isDone}>
        <p dir="auto">{withMarkers(text, written.summary, results)}</p>
        <p class="hint" role="status">{isDone ? origin(written.summary) : t("search.summary.working")}</p>
        {written.warnings.map((warning) => <Notice key={warning} kind="warning">{warning}</Notice>)}
        <ErrorMessage error={written.error} />
      </div>
    </Section>
  );
}

function origin(summary: Summary | undefined): string {
  if (summary === undefined) return "";
  if (summary.kind === "extractive") return t("search.summary.extractive");
  return t("search.summary.generated", { model: summary.model ?? "" });
}

function useSummary(body: SearchBody): Written {
  const [written, setWritten] = useState(NOTHING);
  const key = JSON.stringify(body);
  useEffect(() => {
    const controller = new AbortController();
    setWritten(NOTHING);
    read({ ...body, summarize: true }, controller.signal, setWritten).catch((cause: unknown) => {
      if (!controller.signal.aborted) setWritten((written) => ({ ...written, error: asApiError(cause) }));
    });
    return () => controller.abort();
  }, [key]);
  return written;
}

async function read(body: unknown, signal: AbortSignal, set: (change: (written: Written) => Written) => void) {
  for await (const { event, data } of postStream("/api/v1/search/stream", body, signal)) {
    if (event === "summary.delta") {
      const { text } = data as { text: string };
      set((written) => ({ ...written, text: written.text + text }));
    } else if (event === "summary.done") {
      const done = data as Summary & { warnings?: string[] };
      set((written) => ({ ...written, summary: done, warnings: done.warnings ?? [] }));
    } else if (event === "error") {
      const { code, message } = data as { code: number; message: string };
      set((written) => ({ ...written, error: new ApiError(message, 200, code, "", null) }));
    }
  }
}

/** The text with each marker as a link to the result of its chunk. */
function withMarkers(text: string, summary: Summary | undefined, results: SearchResult[]) {
  const chunks = new Map(summary?.citations.map(({ marker, chunk_id }) => [marker, chunk_id]));
  return text.split(/(\[\d+\])/).map((part, at) => {
    if (!/^\[\d+\]$/.test(part)) return part;
    const cited = chunks.get(part);
    const place = cited === undefined ? Number(part.slice(1, -1)) : results.findIndex((result) => result.chunk_id === cited) + 1;
    if (place < 1 || place > results.length) return part;
    return (
      <a
        key={at}
        class="marker"
        href={`#result-${place}`}
        aria-label={t("search.summary.passage", { n: place })}
        onClick={(event) => {
          event.preventDefault();
          const result = document.getElementById(`result-${place}`);
          result?.scrollIntoView({ block: "center", behavior: "smooth" });
          result?.focus({ preventScroll: true });
        }}
      >
        {part}
      </a>
    );
  });
}
