// The metadata of a document as lines that a person edits.

type Entry = [key: string, value: string];

/** Metadata that the server writes itself. */
const RESERVED = ["raw_file_path", "original_filename", "original_size_bytes"];

/** Metadata as it is edited: what lines can hold, and the rest, which stays as it is. */
export interface EditedMetadata {
  lines: string;
  /** Entries that their line would not give again, such as a value of several lines. */
  kept: Entry[];
}

/** The metadata of a document, without what the server writes. */
export function editedOf(metadata: Record<string, string>): EditedMetadata {
  const own = Object.entries(metadata).filter(([key]) => !RESERVED.includes(key));
  const lines = own.filter(isLine).map(lineOf).join("\n");
  return { lines, kept: own.filter((entry) => !isLine(entry)) };
}

/** The metadata of lines with the entries that were kept, or the first line that is no entry. */
export function parseMetadata({ lines, kept }: EditedMetadata): { metadata: Record<string, string> } | { fault: string } {
  const entries: Entry[] = [];
  for (const line of lines.split("\n")) {
    if (line.trim() === "") continue;
    const entry = entryOf(line);
    if (entry === undefined) return { fault: line };
    entries.push(entry);
  }
  return { metadata: Object.fromEntries([...kept, ...entries]) };
}

function isLine(entry: Entry): boolean {
  const line = lineOf(entry);
  const again = line.includes("\n") || line.includes("\r") ? undefined : entryOf(line);
  return again?.[0] === entry[0] && again[1] === entry[1];
}

function lineOf([key, value]: Entry): string {
  return `${key}=${value}`;
}

function entryOf(line: string): Entry | undefined {
  const at = line.indexOf("=");
  const key = line.slice(0, Math.max(0, at)).trim();
  return at < 0 || key === "" ? undefined : [key, line.slice(at + 1).trim()];
}
