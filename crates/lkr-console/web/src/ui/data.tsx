// How values are shown. Every text of a document is a text node in an element of its own direction, so that it can
// neither become markup nor turn what stands around it.
import type { ComponentChildren } from "preact";
import { number, t } from "../i18n";
import { exactTime, secondTime, shortTime } from "../i18n/format";

/** A text that comes from documents or people. */
export function Foreign({ children }: { children: string }) {
  return <bdi>{children}</bdi>;
}

export function Time({ at }: { at: string }) {
  return <time dateTime={at} title={exactTime(at)}>{shortTime(at)}</time>;
}

/** A time to the second, for lists in which the order of events matters. */
export function ExactTime({ at }: { at: string }) {
  return <time dateTime={at} title={exactTime(at)}>{secondTime(at)}</time>;
}

export function Badge({ kind = "neutral", children }: { kind?: BadgeKind; children: ComponentChildren }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

export type BadgeKind = "neutral" | "ok" | "warning" | "danger" | "accent";

interface ProgressProps {
  label: string;
  done: number;
  /** 0 if it is not known. */
  total: number;
}

export function Progress({ label, done, total }: ProgressProps) {
  const value = total > 0 ? Math.min(1, done / total) : undefined;
  return (
    <div class="progress">
      <progress aria-label={label} {...(value !== undefined && { value })} max={1} />
      <span class="progress-text">{total > 0 ? t("common.of", { done: number(done), total: number(total) }) : ""}</span>
    </div>
  );
}

/** Names and values. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface BarsProps {
  label: string;
  bars: { name: string; value: number; text?: string; href?: string }[];
}

/** Horizontal bars with their values: a list that can be read as well as seen. */
export function Bars({ label, bars }: BarsProps) {
  const largest = Math.max(1, ...bars.map((bar) => bar.value));
  return (
    <ul class="bars" aria-label={label}>
      {bars.map((bar) => (
        <li key={bar.href ?? bar.name}>
          <span class="bar-name">{bar.href ? <a href={bar.href}><bdi>{bar.name}</bdi></a> : <bdi>{bar.name}</bdi>}</span>
          <span class="bar-track" aria-hidden="true">
            <span class="bar" style={{ width: `${(100 * bar.value) / largest}%` }} />
          </span>
          <span class="bar-value">{bar.text ?? number(bar.value)}</span>
        </li>
      ))}
    </ul>
  );
}
