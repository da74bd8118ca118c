// The text of a document in Markdown, with its headings, lists, tables and code.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { t } from "../../i18n";
import { CodePoints, type Range } from "../../text";
import { Block, markedIn, type Shown } from "./markdown/blocks";
import { grouped, parse, walk, type Parsed } from "./markdown/parse";
import { Windowed } from "./windowed";

interface MarkdownViewProps {
  text: string;
  /** What is shown of a text that cannot be read as Markdown in a bounded time. */
  plain: ComponentChildren;
  /** The passage that is marked and scrolled to, in code points. */
  target: Range | undefined;
}

/** The length of what is drawn together, in UTF-16 units. */
const GROUP = 6_000;

export function MarkdownView({ text, plain, target }: MarkdownViewProps) {
  const parsed = useMemo(() => parse(text), [text]);
  return parsed === undefined ? <>{plain}</> : <Tree text={text} parsed={parsed} target={target} />;
}

function Tree({ text, parsed, target }: { text: string; parsed: Parsed; target: Range | undefined }) {
  const points = useMemo(() => new CodePoints(text), [text]);
  const groups = useMemo(() => grouped(parsed.blocks, GROUP), [parsed]);
  const shown: Shown = useMemo(() => {
    const marked = target && { start: points.unit(target.start), end: points.unit(target.end) };
    const isMarked = (node: Shown["first"]) => node !== undefined && marked !== undefined && markedIn(node, text, marked) !== undefined;
    let first: Shown["first"];
    for (const block of marked ? parsed.blocks : []) {
      for (const node of walk(block)) if (first === undefined && isMarked(node)) first = node;
      if (first) break;
    }
    return { parsed, marked, first, tableLabel: t("document.table") };
  }, [parsed, target?.start, target?.end]);
  return (
    <Windowed segments={groups} target={shown.marked}>
      {(group) => (
        <div key={group.start} class="segment markdown">
          {group.blocks.map((block, at) => <Block key={at} node={block} shown={shown} />)}
        </div>
      )}
    </Windowed>
  );
}
