// Metrics in Prometheus' text format.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of an exposition. Lines that are none are left out. */
export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (match === null) continue;
    const [, name = "", labels = "", value = ""] = match;
    samples.push({ name, labels: labelsOf(labels), value: numberOf(value) });
  }
  return samples;
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, unescaped);
  return labels;
}

function unescaped(_: string, escaped: string): string {
  return escaped === "n" ? "\n" : escaped;
}

function numberOf(text: string): number {
  return text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text);
}

/** The value of a metric without labels. */
export function valueOf(samples: readonly Sample[], name: string): number | undefined {
  return samples.find((sample) => sample.name === name)?.value;
}

/** A histogram: how many observations are at most each bound, and all of them. */
export interface Histogram {
  /** By bound, the smallest first; the last bound is infinite. */
  buckets: { bound: number; count: number }[];
  sum: number;
  count: number;
}

/** The histogram of a name whose labels contain `labels`. */
export function histogramOf(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string> = {},
): Histogram | undefined {
  const matching = samples.filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
  const buckets = matching
    .filter((sample) => sample.name === `${name}_bucket`)
    .map((sample) => ({ bound: numberOf(sample.labels["le"] ?? ""), count: sample.value }))
    .sort((a, b) => a.bound - b.bound);
  const sum = valueOf(matching, `${name}_sum`);
  const count = valueOf(matching, `${name}_count`);
  return buckets.length === 0 || sum === undefined || count === undefined ? undefined : { buckets, sum, count };
}

/** The observations between two readings; those of the later one if the server has started anew since. */
export function between(before: Histogram, after: Histogram): Histogram {
  if (after.count < before.count) return after;
  const earlier = new Map(before.buckets.map(({ bound, count }) => [bound, count]));
  return {
    buckets: after.buckets.map(({ bound, count }) => ({ bound, count: count - (earlier.get(bound) ?? 0) })),
    sum: after.sum - before.sum,
    count: after.count - before.count,
  };
}

/**
 * A quantile as Prometheus' histogram_quantile estimates it: linear within its bucket. The last finite bound stands for
 * what lies beyond it. Nothing without observations.
 */
export function quantile(histogram: Histogram, q: number): number | undefined {
  const { buckets, count } = histogram;
  if (count === 0) return undefined;
  const rank = q * count;
  const at = buckets.findIndex((bucket) => bucket.count >= rank);
  const bucket = buckets[at];
  const below = buckets[at - 1] ?? { bound: 0, count: 0 };
  if (bucket === undefined || bucket.bound === Infinity) return below.bound;
  return below.bound + ((bucket.bound - below.bound) * (rank - below.count)) / (bucket.count - below.count);
}
