// A long text of which only the segments near the person's place are in the page.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../../i18n";
import type { Range } from "../../text";
import { Button } from "../../ui/controls";

interface WindowedProps<T extends Range> {
  segments: readonly T[];
  /** What is scrolled to: the element with the id `passage`, which a segment of this range has. */
  target: Range | undefined;
  children: (segment: T) => ComponentChildren;
}

/** How many segments are shown around the place, on each side. */
const AROUND = 8;

export function Windowed<T extends Range>({ segments, target, children }: WindowedProps<T>) {
  const at = target ? Math.max(0, segments.findIndex(({ end }) => target.start < end)) : 0;
  const [shown, setShown] = useState(() => around(at, segments.length));
  useLayoutEffect(() => {
    if (at < shown.first || at > shown.last) setShown(around(at, segments.length));
  }, [at, segments.length]);
  const place = `${target?.start}-${target?.end}`;
  useEffect(() => {
    if (target === undefined) return;
    const mark = document.getElementById("passage");
    mark?.scrollIntoView({ block: "center" });
    mark?.focus({ preventScroll: true });
  }, [place, shown.first]);
  return (
    <div class="document-text">
      {shown.first > 0 && (
        <More label={t("document.more_before")} onReach={() => setShown({ ...shown, first: Math.max(0, shown.first - AROUND) })} />
      )}
      {segments.slice(shown.first, shown.last + 1).map(children)}
      {shown.last < segments.length - 1 && (
        <More
          label={t("document.more_after")}
          isAutomatic
          onReach={() => setShown({ ...shown, last: Math.min(segments.length - 1, shown.last + AROUND) })}
        />
      )}
    </div>
  );
}

function around(at: number, count: number): { first: number; last: number } {
  return { first: Math.max(0, at - AROUND), last: Math.min(count - 1, at + AROUND) };
}

interface MoreProps {
  label: string;
  onReach: () => void;
  /** Also when it comes into view. */
  isAutomatic?: boolean;
}

function More({ label, onReach, isAutomatic = false }: MoreProps) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef(onReach);
  latest.current = onReach;
  useEffect(() => {
    if (!isAutomatic || element.current === null) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && latest.current(), { rootMargin: "400px" });
    observer.observe(element.current);
    return () => observer.disconnect();
  });
  return <div ref={element} class="more"><Button onClick={onReach}>{label}</Button></div>;
}
