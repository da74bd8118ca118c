// The parts of a text in Markdown as elements. Texts become text nodes only; nothing of a document is loaded by itself.
import type { ComponentChildren } from "preact";
import type { Range } from "../../../text";
import { safeAddress } from "./links";
import { type Nodes, type Parsed, rangeOf } from "./parse";
import { placesOf, unitsWithin } from "./places";

export interface Shown {
  parsed: Parsed;
  /** What is marked, in UTF-16 units of the source. */
  marked: Range | undefined;
  /** The first part with a marked text. */
  first: Nodes | undefined;
  /** What a table is called. */
  tableLabel: string;
}

interface NodeProps<T extends Nodes = Nodes> {
  node: T;
  shown: Shown;
}

type Of<T extends Nodes["type"]> = Extract<Nodes, { type: T }>;

export function Block({ node, shown }: NodeProps) {
  switch (node.type) {
    case "paragraph":
      return <p dir="auto"><Children node={node} shown={shown} /></p>;
    case "heading":
      return <Heading node={node} shown={shown} />;
    case "blockquote":
      return <blockquote><Children node={node} shown={shown} /></blockquote>;
    case "list":
      return node.ordered ? (
        <ol start={node.start ?? 1}><Children node={node} shown={shown} /></ol>
      ) : (
        <ul><Children node={node} shown={shown} /></ul>
      );
    case "listItem":
      return <Item node={node} shown={shown} />;
    case "code":
      return <pre tabIndex={0} dir="auto"><code><Text node={node} shown={shown} /></code></pre>;
    case "html":
      return <p class="raw" dir="auto"><Text node={node} shown={shown} /></p>;
    case "definition":
      return <p class="raw" dir="auto"><Text node={node} shown={shown} /></p>;
    case "table":
      return <Table node={node} shown={shown} />;
    case "thematicBreak":
      return <hr />;
    default:
      return <Inline node={node} shown={shown} />;
  }
}

function Inline({ node, shown }: NodeProps) {
  switch (node.type) {
    case "text":
      return <Text node={node} shown={shown} />;
    case "html":
      return <span class="raw"><Text node={node} shown={shown} /></span>;
    case "inlineCode":
      return <code><Text node={node} shown={shown} /></code>;
    case "emphasis":
      return <em><Children node={node} shown={shown} /></em>;
    case "strong":
      return <strong><Children node={node} shown={shown} /></strong>;
    case "break":
      return <br />;
    case "link":
      return <Link address={node.url} isPlain={isAddressItself(node)}><Children node={node} shown={shown} /></Link>;
    case "linkReference":
      return <Link address={shown.parsed.addresses.get(node.identifier) ?? ""}><Children node={node} shown={shown} /></Link>;
    case "image":
      return <Link address={node.url}><Text node={node} shown={shown} /></Link>;
    case "imageReference":
      return <Link address={shown.parsed.addresses.get(node.identifier) ?? ""}><Text node={node} shown={shown} /></Link>;
    default:
      return <Children node={node} shown={shown} />;
  }
}

function Children({ node, shown }: NodeProps) {
  if (!("children" in node)) return null;
  return <>{node.children.map((child, at) => <Block key={at} node={child} shown={shown} />)}</>;
}

function Heading({ node, shown }: NodeProps<Of<"heading">>) {
  const Level = `h${shown.parsed.levels.get(node) ?? 2}` as "h2";
  return <Level dir="auto"><Children node={node} shown={shown} /></Level>;
}

/** An item of a tight list has no paragraphs. */
function Item({ node, shown }: NodeProps<Of<"listItem">>) {
  return (
    <li dir="auto">
      {node.children.map((child, at) =>
        child.type === "paragraph" && !node.spread ? (
          <Children key={at} node={child} shown={shown} />
        ) : (
          <Block key={at} node={child} shown={shown} />
        ),
      )}
    </li>
  );
}

function Table({ node, shown }: NodeProps<Of<"table">>) {
  const [head, ...rows] = node.children;
  const side = (at: number) => ({ textAlign: node.align?.[at] ?? "start" });
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={shown.tableLabel}>
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, at) =>
              // An empty cell heads nothing.
              cell.children.length === 0 ? <td key={at} /> : (
                <th key={at} scope="col" dir="auto" style={side(at)}><Children node={cell} shown={shown} /></th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.children.map((cell, at) => (
                <td key={at} dir="auto" style={side(at)}><Children node={cell} shown={shown} /></td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface LinkProps {
  address: string;
  /** The text is the address already. */
  isPlain?: boolean;
  children: ComponentChildren;
}

/** A link shows where it leads, and opens it in a page that knows nothing of this one. */
function Link({ address, isPlain = false, children }: LinkProps) {
  const href = safeAddress(address);
  return (
    <>
      {href === undefined ? children : <a href={href} target="_blank" rel="noopener noreferrer">{children}</a>}
      {!isPlain && address !== "" && <small class="address"> (<bdi>{address}</bdi>)</small>}
    </>
  );
}

function isAddressItself({ url, children }: Of<"link">): boolean {
  const [only] = children;
  return children.length === 1 && only?.type === "text" && (only.value === url || `mailto:${only.value}` === url);
}

/** The text that a part shows by itself. */
export function textOf(node: Nodes, source: string): string | undefined {
  switch (node.type) {
    case "text":
    case "inlineCode":
    case "code":
    case "html":
      return node.value;
    case "image":
    case "imageReference":
      return node.alt || "–";
    case "definition":
      return source.slice(rangeOf(node).start, rangeOf(node).end);
    default:
      return undefined;
  }
}

/** The units of a part's text that are marked. */
export function markedIn(node: Nodes, source: string, marked: Range): Range | undefined {
  const text = textOf(node, source);
  const range = rangeOf(node);
  if (text === undefined || range.end <= marked.start || range.start >= marked.end) return undefined;
  const units = unitsWithin(text.length, placesOf(source, contentOf(node, source), text), marked);
  return units.start < units.end ? units : undefined;
}

/** Where the text of a part begins: code has a fence before it. */
function contentOf(node: Nodes, source: string): Range {
  const { start, end } = rangeOf(node);
  if (node.type === "inlineCode") return { start: start + (/^`*/.exec(source.slice(start, end))?.[0].length ?? 0), end };
  if (node.type === "code" && /^\s*(`{3}|~{3})/.test(source.slice(start, end))) {
    const line = source.indexOf("\n", start);
    return { start: line < 0 ? end : line + 1, end };
  }
  return { start, end };
}

function Text({ node, shown }: NodeProps) {
  const { source } = shown.parsed;
  const text = textOf(node, source) ?? "";
  const units = shown.marked && markedIn(node, source, shown.marked);
  if (units === undefined) return <>{text}</>;
  return (
    <>
      {text.slice(0, units.start)}
      <mark class="passage-mark" tabIndex={-1} {...(node === shown.first && { id: "passage" })}>
        {text.slice(units.start, units.end)}
      </mark>
      {text.slice(units.end)}
    </>
  );
}
