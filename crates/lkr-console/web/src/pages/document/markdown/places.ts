// Where the characters of a parsed text are in its source, so that a range of the source can be marked in what is shown.
import { decodeString } from "micromark-util-decode-string";
import type { Range } from "../../../text";

/** How far the next character is looked for behind marks that are not shown, such as the `>` of a quotation. */
const REACH = 256;

const REFERENCE = /&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});/y;

/**
 * The place in `source` of each UTF-16 unit of `value`, which a parser read from `range`: without the backslashes of escapes,
 * with references decoded, and without the beginnings of lines.
 */
export function placesOf(source: string, range: Range, value: string): (unit: number) => number {
  if (range.end - range.start === value.length && source.startsWith(value, range.start)) {
    return (unit) => range.start + unit;
  }
  const places: number[] = [];
  let at = range.start;
  while (places.length < value.length) {
    const found = next(source, at, range.end, value, places.length);
    for (let unit = 0; unit < (found?.units ?? 1); unit++) places.push(found?.place ?? at);
    at = found?.end ?? at;
  }
  return (unit) => places[unit] ?? range.end;
}

/** What of the source gives the next units of the value: its place, its end, and how many units it gives. */
function next(source: string, from: number, end: number, value: string, unit: number) {
  for (let place = from; place < Math.min(end, from + REACH); place++) {
    const char = source[place];
    if (char === "&") {
      REFERENCE.lastIndex = place;
      const [reference = ""] = REFERENCE.exec(source) ?? [];
      const decoded = decodeString(reference);
      if (decoded !== reference && value.startsWith(decoded, unit)) {
        return { place, end: place + reference.length, units: decoded.length };
      }
    }
    if (char === "\\" && source[place + 1] === value[unit]) return { place, end: place + 2, units: 1 };
    if (char === value[unit]) return { place, end: place + 1, units: 1 };
  }
  return undefined;
}

/** The units of a value that come from a range of its source. */
export function unitsWithin(length: number, placeOf: (unit: number) => number, range: Range): Range {
  let start = 0;
  while (start < length && placeOf(start) < range.start) start++;
  let end = start;
  while (end < length && placeOf(end) < range.end) end++;
  return { start, end };
}
