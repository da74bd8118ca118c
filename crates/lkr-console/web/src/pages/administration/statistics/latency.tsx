// How fast searches are.
import { number, t, tData } from "../../../i18n";
import { Bars, Fact, Facts } from "../../../ui/data";
import { Notice } from "../../../ui/feedback";
import { LatencyChart, LatencyTable } from "./chart";
import type { Live } from "./live";
import { histogramOf, quantile, type Sample } from "./metrics";
import { milliseconds, percent } from "./units";

export function Latency({ live }: { live: Live }) {
  const all = histogramOf(live.samples ?? [], "lkr_search_duration_seconds");
  const ms = (q: number) => {
    const seconds = all && quantile(all, q);
    return seconds === undefined ? "–" : milliseconds(seconds * 1000);
  };
  return (
    <div class="card stack">
      {live.isFailing && <Notice kind="warning">{t("statistics.metrics_fail")}</Notice>}
      <h3>{t("statistics.since_start")}</h3>
      <Facts>
        <Fact name={t("statistics.searches")}>{number(all?.count ?? 0)}</Fact>
        <Fact name={t("statistics.p50")}>{ms(0.5)}</Fact>
        <Fact name={t("statistics.p95")}>{ms(0.95)}</Fact>
        <CacheFact samples={live.samples ?? []} />
      </Facts>
      <h3>{t("statistics.live")}</h3>
      <p class="hint">{t("statistics.live_hint")}</p>
      {live.points.some(({ searches }) => searches > 0) ? (
        <LatencyChart points={live.points} />
      ) : (
        <p class="chart-empty muted">{t("statistics.no_searches")}</p>
      )}
      <LatencyTable points={live.points} />
      <Stages samples={live.samples ?? []} />
    </div>
  );
}

function CacheFact({ samples }: { samples: Sample[] }) {
  const count = (cache: string) =>
    samples.find((sample) => sample.name === "lkr_search_cache_total" && sample.labels["cache"] === cache)?.value ?? 0;
  const all = count("hit") + count("miss");
  return <Fact name={t("statistics.cache_hits")}>{all === 0 ? "–" : percent(count("hit") / all)}</Fact>;
}

/** The stages of a search, one after the other. */
const STAGES = ["admission", "encode", "legs", "fuse", "read", "rerank", "assemble", "summarize"];

/** Where the time of a search goes: the mean of each stage since the start. */
function Stages({ samples }: { samples: Sample[] }) {
  const name = "lkr_search_stage_duration_seconds";
  const bars = STAGES.flatMap((stage) => {
    const histogram = histogramOf(samples, name, { stage });
    if (!histogram || histogram.count === 0) return [];
    const mean = (1000 * histogram.sum) / histogram.count;
    return [{ name: tData("search_stage", stage), value: mean, text: milliseconds(mean) }];
  });
  if (bars.length === 0) return null;
  return (
    <>
      <h3>{t("statistics.stages")}</h3>
      <ScaledBars label={t("statistics.stages")} bars={bars} />
    </>
  );
}

/** Bars draw nothing smaller than one: small values are scaled so that the largest fills the line. */
function ScaledBars({ label, bars }: { label: string; bars: { name: string; value: number; text: string }[] }) {
  const largest = Math.max(...bars.map(({ value }) => value)) || 1;
  return <Bars label={label} bars={bars.map((bar) => ({ ...bar, value: (100 * bar.value) / largest }))} />;
}
