// The extracted text of a document, as it is.
import { useMemo } from "preact/hooks";
import { CodePoints, pieces, type Range } from "../../text";
import { Windowed } from "./windowed";

interface TextViewProps {
  text: string;
  /** Where sections begin, in code points. The text is cut there if possible. */
  starts: readonly number[];
  /** The passage that is marked and scrolled to. */
  target: Range | undefined;
}

/** The length of a segment, in code points. */
const SEGMENT = 6_000;

export function TextView({ text, starts, target }: TextViewProps) {
  const points = useMemo(() => new CodePoints(text), [text]);
  const segments = useMemo(() => cut(points.length, starts), [points, starts]);
  return (
    <Windowed segments={segments} target={target}>
      {(segment) => <Segment key={segment.start} points={points} segment={segment} target={target} />}
    </Windowed>
  );
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
