// What is stored, how fast searches are, and how the service is.
import type { ComponentChildren } from "preact";
import { get } from "../../api/client";
import type { Space, Stats } from "../../api/types";
import { t } from "../../i18n";
import { loadSpaces } from "../../known";
import { spaceHref } from "../../routes";
import { Button } from "../../ui/controls";
import { Bars } from "../../ui/data";
import { Loaded } from "../../ui/loaded";
import { Page, Section } from "../../ui/page";
import { useResource } from "../../use_resource";
import { categoryCounts, categoryHref } from "./names";
import { AddedByDay, Months, Sizes } from "./statistics/growth";
import { Latency } from "./statistics/latency";
import { useLiveMetrics } from "./statistics/live";
import { loadReadiness } from "./statistics/readiness";
import { Service } from "./statistics/service";

export function StatisticsPage() {
  const stored = useResource(loadStored, []);
  const readiness = useResource(loadReadiness, []);
  const live = useLiveMetrics();
  const reload = () => {
    stored.reload();
    readiness.reload();
  };
  const isBusy = stored.isLoading || readiness.isLoading;
  const refresh = <Button icon="retry" isBusy={isBusy} onClick={reload}>{t("common.refresh")}</Button>;
  return (
    <Page title={t("nav.statistics")} actions={refresh}>
      <Section title={t("statistics.service")}>
        <Loaded resource={readiness}>{(readiness) => <Service readiness={readiness} samples={live.samples} />}</Loaded>
      </Section>
      <Section title={t("statistics.latency")}><Latency live={live} /></Section>
      <Section title={t("statistics.stored")}>
        <Loaded resource={stored} rows={8}>{(stored) => <Contents {...stored} />}</Loaded>
      </Section>
    </Page>
  );
}

interface Stored {
  stats: Stats;
  spaces: Space[];
}

async function loadStored(signal: AbortSignal): Promise<Stored> {
  const [stats, spaces] = await Promise.all([
    get("/api/v1/knowledge/stats", { query: { histograms: "true" }, signal }),
    loadSpaces(signal),
  ]);
  return { stats, spaces };
}

const LAYERS = ["l1", "l2", "l3", "chunks"] as const;

function Contents({ stats, spaces }: Stored) {
  const categories = categoryCounts(stats).sort((a, b) => b.count - a.count);
  const layers = LAYERS.map((layer) => ({ name: t(`layer.${layer}`), value: stats.collections[layer] }));
  return (
    <div class="panels">
      <Panel title={t("statistics.layers")} total={t("statistics.documents", { n: stats.documents_total })}>
        <Bars label={t("statistics.layers")} bars={layers} />
      </Panel>
      <Panel title={t("statistics.by_day")}><AddedByDay stats={stats} /><Months stats={stats} /></Panel>
      <Panel title={t("statistics.by_size")}><Sizes stats={stats} /></Panel>
      <Panel title={t("statistics.by_category")} total={t("statistics.uncategorized", { n: stats.uncategorized_count })}>
        <Bars
          label={t("statistics.by_category")}
          bars={categories.map(({ name, count }) => ({ name, value: count, href: categoryHref(name) }))}
        />
      </Panel>
      <Panel title={t("statistics.by_space")}>
        <Bars
          label={t("statistics.by_space")}
          bars={spaces.map(({ space, title, documents }) => ({ name: title || space, value: documents, href: spaceHref(space) }))}
        />
      </Panel>
    </div>
  );
}

function Panel({ title, total, children }: { title: string; total?: string; children: ComponentChildren }) {
  return (
    <section class="card stack tight">
      <div class="spread">
        <h3>{title}</h3>
        {total && <span class="muted">{total}</span>}
      </div>
      {children}
    </section>
  );
}
