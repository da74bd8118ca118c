// The server's metrics, read again and again while the page is seen.
import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../../../api/client";
import { between, histogramOf, parseMetrics, quantile, type Histogram, type Sample } from "./metrics";

/** The time between two readings. */
const PERIOD_MS = 5000;
/** How many intervals are kept: a quarter of an hour. */
const MOST_POINTS = 180;

const SEARCHES = "lkr_search_duration_seconds";

/** The searches of an interval. Without searches there are no quantiles. */
export interface Point {
  /** Seconds since 1970. */
  at: number;
  searches: number;
  p50: number | null;
  p95: number | null;
}

export interface Live {
  /** The latest reading; none before the first. */
  samples: Sample[] | undefined;
  points: Point[];
  isFailing: boolean;
}

export function useLiveMetrics(): Live {
  const [live, setLive] = useState<Live>({ samples: undefined, points: [], isFailing: false });
  const before = useRef<Histogram | undefined>(undefined);
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      if (document.visibilityState === "hidden") return;
      try {
        const response = await send("get", "/metrics", { signal: controller.signal });
        const samples = parseMetrics(await response.text());
        const searches = histogramOf(samples, SEARCHES) ?? NO_SEARCHES;
        const point = before.current && pointOf(between(before.current, searches), Date.now() / 1000);
        before.current = searches;
        setLive(({ points }) => ({
          samples,
          points: point ? [...points, point].slice(-MOST_POINTS) : points,
          isFailing: false,
        }));
      } catch {
        if (!controller.signal.aborted) setLive((live) => ({ ...live, isFailing: true }));
      }
    };
    void read();
    const timer = setInterval(() => void read(), PERIOD_MS);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, []);
  return live;
}

/** The metric is shown once it was used: before the first search there is none. */
const NO_SEARCHES: Histogram = { buckets: [], sum: 0, count: 0 };

function pointOf(searches: Histogram, at: number): Point {
  const ms = (q: number) => {
    const seconds = quantile(searches, q);
    return seconds === undefined ? null : seconds * 1000;
  };
  return { at, searches: searches.count, p50: ms(0.5), p95: ms(0.95) };
}
