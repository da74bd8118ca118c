// The extracted text of a document: cut into segments, of which only those near the person's place are in the page.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../../i18n";
import { CodePoints, pieces, type Range } from "../../text";
import { Button } from "../../ui/controls";

interface TextViewProps {
  text: string;
  /** Where sections begin, in code points. The text is cut there if possible. */
  starts: readonly number[];
  /** The passage that is marked and scrolled to. */
  target: Range | undefined;
}

/** The length of a segment, in code points. */
const SEGMENT = 6_000;
/** How many segments are shown around the place, on each side. */
const AROUND = 8;

export function TextView({ text, starts, target }: TextViewProps) {
  const points = useMemo(() => new CodePoints(text), [text]);
  const segments = useMemo(() => cut(points.length, starts), [points, starts]);
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
  const visible = segments.slice(shown.first, shown.last + 1);
  return (
    <div class="document-text">
      {shown.first > 0 && (
        <More label={t("document.more_before")} onReach={() => setShown({ ...shown, first: Math.max(0, shown.first - AROUND) })} />
      )}
      {visible.map((segment) => (
        <Segment key={segment.start} points={points} segment={segment} target={target} />
      ))}
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

/** Segments of about the same length that begin where sections do, where those are near. */
function cut(length: number, starts: readonly number[]): Range[] {
  const segments: Range[] = [];
  const sorted = [...starts].sort((a, b) => a - b);
  let next = 0;
  let start = 0;
  while (start < length) {
    let end = Math.min(length, start + SEGMENT);
    let best = 0;
    while (next < sorted.length && (sorted[next] ?? 0) <= end) {
      best = sorted[next] ?? 0;
      next++;
    }
    if (end < length && best > start + SEGMENT / 2) end = best;
    segments.push({ start, end });
    start = end;
  }
  return segments;
}

interface SegmentProps {
  points: CodePoints;
  segment: Range;
  target: Range | undefined;
}

function Segment({ points, segment, target }: SegmentProps) {
  const text = useMemo(() => points.slice(segment.start, segment.end), [points, segment]);
  const isHit = target !== undefined && target.start < segment.end && target.end > segment.start;
  if (!isHit) return <p class="segment" dir="auto">{text}</p>;
  const inside = { start: target.start - segment.start, end: target.end - segment.start };
  const isFirst = target.start >= segment.start;
  return (
    <p class="segment" dir="auto">
      {pieces(text, [inside]).map(({ text, isMarked }, at) =>
        isMarked ? (
          <mark key={at} class="passage-mark" tabIndex={-1} {...(isFirst && { id: "passage" })}>{text}</mark>
        ) : (
          text
        ),
      )}
    </p>
  );
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
