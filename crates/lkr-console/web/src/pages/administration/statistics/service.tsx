// The state of the service: what it depends on, its queue, and its sizes.
import type { Readiness } from "../../../api/types";
import { number, t, tData } from "../../../i18n";
import { bytes, duration } from "../../../i18n/format";
import { Badge, Fact, Facts, Foreign, type BadgeKind } from "../../../ui/data";
import { type Column, DataTable } from "../../../ui/table";
import { valueOf, type Sample } from "./metrics";
import { milliseconds } from "./units";

const HEALTH: Record<Readiness["status"], BadgeKind> = { ok: "ok", degraded: "warning", down: "danger" };

function Health({ status }: { status: Readiness["status"] }) {
  return <Badge kind={HEALTH[status]}>{t(`health.${status}`)}</Badge>;
}

export function Service({ readiness, samples }: { readiness: Readiness; samples: Sample[] | undefined }) {
  const { status, version, queue, workers, embedding } = readiness;
  return (
    <div class="stack">
      <div class="card">
        <Facts>
          <Fact name={t("statistics.state")}><Health status={status} /></Fact>
          <Fact name={t("statistics.version")}>{version}</Fact>
          {queue && <Fact name={t("statistics.queue")}>{number(queue.tasks)}</Fact>}
          {queue?.oldest_age_s != null && <Fact name={t("statistics.oldest")}>{duration(queue.oldest_age_s * 1000)}</Fact>}
          {workers && (
            <Fact name={t("statistics.workers")}>
              {t("statistics.workers_busy", { running: workers.running_tasks, count: workers.count })}
            </Fact>
          )}
          {embedding?.in_use && <Fact name={t("statistics.model")}><Foreign>{embedding.in_use}</Foreign></Fact>}
          <MetricFacts samples={samples ?? []} />
        </Facts>
      </div>
      <Dependencies readiness={readiness} />
    </div>
  );
}

/** Sizes, of which a server shows those that it knows. */
function MetricFacts({ samples }: { samples: Sample[] }) {
  const disk = valueOf(samples, "lkr_store_disk_bytes");
  const cache = valueOf(samples, "lkr_search_cache_bytes");
  const memory = valueOf(samples, "process_resident_memory_bytes");
  const started = valueOf(samples, "process_start_time_seconds");
  return (
    <>
      {disk !== undefined && <Fact name={t("statistics.disk")}>{bytes(disk)}</Fact>}
      {memory !== undefined && <Fact name={t("statistics.memory")}>{bytes(memory)}</Fact>}
      {cache !== undefined && <Fact name={t("statistics.cache")}>{bytes(cache)}</Fact>}
      {started !== undefined && <Fact name={t("statistics.uptime")}>{duration(Date.now() - started * 1000)}</Fact>}
    </>
  );
}

interface Dependency {
  name: string;
  status: Readiness["status"];
  ms: number | undefined;
  reason: string;
}

function Dependencies({ readiness }: { readiness: Readiness }) {
  const checks = readiness.checks as Record<string, { latency_ms: number; reason: string | null } | undefined> | null;
  const rows = Object.entries(readiness.dependencies).map(([name, status]): Dependency => {
    const check = checks?.[name];
    return { name, status, ms: check?.latency_ms, reason: check?.reason ?? "" };
  });
  const columns: Column<Dependency>[] = [
    { label: t("statistics.dependency"), kind: "header", cell: ({ name }) => tData("dependency", name) },
    { label: t("statistics.state"), cell: ({ status }) => <Health status={status} /> },
    { label: t("statistics.check"), kind: "number", cell: ({ ms }) => (ms === undefined ? "–" : milliseconds(ms)) },
    { label: t("statistics.reason"), kind: "long", cell: ({ reason }) => reason !== "" && <Foreign>{reason}</Foreign> },
  ];
  return <DataTable label={t("statistics.dependencies")} columns={columns} rows={rows} rowKey={({ name }) => name} />;
}
