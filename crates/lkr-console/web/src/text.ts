// Texts by code points, in which the API counts.

/** A range of code points, without its end. */
export interface Range {
  start: number;
  end: number;
}

/** A piece of a text, and whether it is marked. */
export interface Piece {
  text: string;
  isMarked: boolean;
}

/** Cuts a text at the ends of ranges. Ranges that overlap are merged; what lies outside the text is ignored. */
export function pieces(text: string, marked: readonly Range[]): Piece[] {
  const points = Array.from(text);
  const found: Piece[] = [];
  let at = 0;
  const push = (end: number, isMarked: boolean) => {
    if (end > at) found.push({ text: points.slice(at, end).join(""), isMarked });
    at = Math.max(at, end);
  };
  for (const { start, end } of merged(marked, points.length)) {
    push(start, false);
    push(end, true);
  }
  push(points.length, false);
  return found;
}

function merged(ranges: readonly Range[], length: number): Range[] {
  const sorted = ranges
    .map(({ start, end }) => ({ start: Math.max(0, start), end: Math.min(length, end) }))
    .filter(({ start, end }) => start < end)
    .sort((a, b) => a.start - b.start);
  const found: Range[] = [];
  for (const range of sorted) {
    const last = found.at(-1);
    if (last && range.start <= last.end) last.end = Math.max(last.end, range.end);
    else found.push({ ...range });
  }
  return found;
}

export interface Excerpt {
  text: string;
  /** The ranges in `text`. */
  marked: Range[];
  isCutBefore: boolean;
  isCutAfter: boolean;
}

/** The part of a text with at most `length` code points that has the most of the ranges, cut between words. */
export function excerpt(text: string, marked: readonly Range[], length: number): Excerpt {
  const points = Array.from(text);
  if (points.length <= length) {
    return { text, marked: merged(marked, points.length), isCutBefore: false, isCutAfter: false };
  }
  const ranges = merged(marked, points.length);
  let best = { start: 0, covered: -1 };
  for (const { start } of [{ start: 0 }, ...ranges]) {
    const from = Math.max(0, Math.min(start - Math.floor(length / 5), points.length - length));
    const inside = ranges.filter((range) => range.start >= from && range.end <= from + length);
    const covered = inside.reduce((sum, range) => sum + range.end - range.start, 0);
    if (covered > best.covered) best = { start: from, covered };
  }
  const isSpace = (at: number) => /\s/u.test(points[at] ?? " ");
  let start = best.start;
  let end = Math.min(points.length, start + length);
  const reach = Math.floor(length / 10);
  for (let step = 0; start > 0 && step < reach; step++) {
    if (isSpace(start - 1)) break;
    start--;
  }
  for (let step = 0; end < points.length && step < reach; step++) {
    if (isSpace(end)) break;
    end++;
  }
  return {
    text: points.slice(start, end).join(""),
    marked: ranges.map((range) => ({ start: range.start - start, end: range.end - start })),
    isCutBefore: start > 0,
    isCutAfter: end < points.length,
  };
}

/** The places in a text that are counted in code points, found in its UTF-16 units. */
export class CodePoints {
  /** The UTF-16 place of every `STEP`th code point. */
  readonly #marks: number[] = [];
  readonly length: number;

  static readonly STEP = 1024;

  constructor(readonly text: string) {
    let points = 0;
    let unit = 0;
    while (unit < text.length) {
      if (points % CodePoints.STEP === 0) this.#marks.push(unit);
      unit += isPair(text, unit) ? 2 : 1;
      points++;
    }
    this.length = points;
  }

  slice(start: number, end: number): string {
    return this.text.slice(this.unit(start), this.unit(end));
  }

  /** The UTF-16 place of a code point. */
  unit(point: number): number {
    if (point >= this.length) return this.text.length;
    const mark = Math.floor(point / CodePoints.STEP);
    let unit = this.#marks[mark] ?? 0;
    for (let left = point - mark * CodePoints.STEP; left > 0; left--) unit += isPair(this.text, unit) ? 2 : 1;
    return unit;
  }
}

function isPair(text: string, unit: number): boolean {
  const code = text.charCodeAt(unit);
  if (code < 0xd800 || code > 0xdbff) return false;
  const next = text.charCodeAt(unit + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

/** A foreign text for the middle of a message, in which it must not turn what stands around it (Unicode's isolates). */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

/** A text with what Markdown would read as its own taken literally. */
export function escapeMarkdown(text: string): string {
  return text.replace(/([\\`*_[\]<>#|~])/g, "\\$1").replace(/\s+/g, " ");
}
