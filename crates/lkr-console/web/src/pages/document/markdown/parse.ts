// Markdown as a tree, with the places of its parts in the text. The text of a document becomes elements by this tree alone.
import type { Nodes, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";
import type { Range } from "../../../text";

export type { Nodes, RootContent };

/** A text in Markdown. Places count UTF-16 units. */
export interface Parsed {
  source: string;
  blocks: RootContent[];
  /** The levels of the headings below the title of the page, without gaps. */
  levels: ReadonlyMap<Nodes, number>;
  /** The addresses of links that are defined elsewhere in the text, by their labels. */
  addresses: ReadonlyMap<string, string>;
}

/** Properties before the text, as many programs write them: a rule is the beginning of a text, too. */
const FRONT_MATTER = /^\uFEFF?---[ \t]*\r?\n(?=[\w"'-]+[ \t]*:)(?:.*\r?\n){1,200}?---[ \t]*(?:\r?\n|$)/;

/** How deep quotations and lists may lie in each other: the parser needs the square of it, and what follows the stack. */
const MOST_LEVELS = 50;

/** How many brackets may open in a part without a blank line: the parser needs the square of those that stay open. */
const MOST_BRACKETS = 3000;

/** The text as a tree; nothing if reading it could take a time without bound. */
export function parse(source: string): Parsed | undefined {
  if (source.split("\n").some(liesDeep) || source.split(/\n\s*\n/).some(opensMany)) return undefined;
  const [front = source.startsWith("\uFEFF") ? "\uFEFF" : ""] = FRONT_MATTER.exec(source) ?? [];
  // Blank lines of the same length keep the places of what follows.
  const blank = front.replace(/[^\r\n]/g, " ");
  const root = fromMarkdown(blank + source.slice(front.length), {
    extensions: [gfmTable()],
    mdastExtensions: [gfmTableFromMarkdown()],
  });
  const blocks = front.length > 1 ? [frontMatter(front), ...root.children] : root.children;
  return { source, blocks, levels: levelsOf(root), addresses: addressesOf(root) };
}

const MARK = /(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))?[ \t]*/y;

/** Whether a line begins with so many marks of quotations and lists, or so far to the right, that it lies very deep. */
function liesDeep(line: string): boolean {
  let levels = 0;
  MARK.lastIndex = 0;
  for (;;) {
    const [mark = ""] = MARK.exec(line) ?? [];
    if (mark === "" || levels > MOST_LEVELS) return levels > MOST_LEVELS;
    levels += mark.trim() === "" ? mark.length / 4 : 1;
  }
}

function opensMany(part: string): boolean {
  return part.split("[").length > MOST_BRACKETS;
}

function frontMatter(front: string): RootContent {
  const point = (offset: number) => ({ line: 1, column: 1, offset });
  return { type: "code", value: front.trimEnd(), position: { start: point(0), end: point(front.length) } };
}

/** The place of a node in the source. */
export function rangeOf({ position }: Nodes): Range {
  return { start: position?.start.offset ?? 0, end: position?.end.offset ?? 0 };
}

export function* walk(node: Nodes): Generator<Nodes> {
  yield node;
  if ("children" in node) for (const child of node.children) yield* walk(child);
}

/** A heading is one level below the nearest one before it with a smaller depth, whatever depths its author left out. */
function levelsOf(root: Root): Map<Nodes, number> {
  const levels = new Map<Nodes, number>();
  const above: number[] = [];
  for (const node of walk(root)) {
    if (node.type !== "heading") continue;
    while ((above.at(-1) ?? 0) >= node.depth) above.pop();
    above.push(node.depth);
    levels.set(node, Math.min(6, 1 + above.length));
  }
  return levels;
}

function addressesOf(root: Root): Map<string, string> {
  const addresses = new Map<string, string>();
  for (const node of walk(root)) {
    if (node.type === "definition" && !addresses.has(node.identifier)) addresses.set(node.identifier, node.url);
  }
  return addresses;
}

/** Blocks that are shown together, each group of about the same length. */
export function grouped(blocks: readonly RootContent[], length: number): { start: number; end: number; blocks: RootContent[] }[] {
  const groups: { start: number; end: number; blocks: RootContent[] }[] = [];
  for (const block of blocks) {
    const { end } = rangeOf(block);
    const last = groups.at(-1);
    if (last && end - last.start <= length) {
      last.blocks.push(block);
      last.end = end;
    } else {
      groups.push({ start: last?.end ?? 0, end, blocks: [block] });
    }
  }
  return groups;
}
