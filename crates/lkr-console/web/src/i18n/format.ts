// Times, sizes and durations as people read them.
import { computed } from "@preact/signals";
import { locale } from "./index";

const dateTimes = computed(() => new Intl.DateTimeFormat(locale.value, { dateStyle: "medium", timeStyle: "short" }));
const secondTimes = computed(() => new Intl.DateTimeFormat(locale.value, { dateStyle: "medium", timeStyle: "medium" }));
const exactTimes = computed(() => new Intl.DateTimeFormat(locale.value, { dateStyle: "full", timeStyle: "long" }));
const relative = computed(() => new Intl.RelativeTimeFormat(locale.value, { numeric: "auto" }));

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** A time within the last week as a distance from now, an earlier one as a date. */
export function shortTime(time: string, now = Date.now()): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) >= 7 * 86_400) return dateTimes.value.format(at);
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  const count = unit === "day" ? dayOf(at) - dayOf(now) : Math.trunc(seconds / length);
  return relative.value.format(count, unit);
}

/** The number of a day of the person's calendar: yesterday is the day before, not a time 24 hours ago. */
function dayOf(time: number): number {
  const day = new Date(time);
  return Date.UTC(day.getFullYear(), day.getMonth(), day.getDate()) / 86_400_000;
}

/** A time with its day and second. */
export function secondTime(time: string): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : secondTimes.value.format(at);
}

/** A time with its day, second and time zone. */
export function exactTime(time: string): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : exactTimes.value.format(at);
}

/** Bytes with a binary unit. */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  const digits = power === 0 ? 0 : 1;
  const format = new Intl.NumberFormat(locale.value, { maximumFractionDigits: digits });
  return `${format.format(count / 1024 ** power)} ${units[power]}`;
}

/** A duration in milliseconds. */
export function duration(ms: number): string {
  const unit = (value: number, unit: string) =>
    new Intl.NumberFormat(locale.value, {
      style: "unit",
      unit,
      unitDisplay: "short",
      maximumFractionDigits: value < 10 && unit === "second" ? 1 : 0,
    }).format(value);
  if (ms < 1000) return unit(ms, "millisecond");
  if (ms < 90_000) return unit(ms / 1000, "second");
  if (ms < 90 * 60_000) return unit(ms / 60_000, "minute");
  return unit(ms / 3_600_000, "hour");
}
