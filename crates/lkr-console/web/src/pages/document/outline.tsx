// The layers of a document as a tree: its sections, and in each its subsections and passages.
import { useEffect, useRef } from "preact/hooks";
import type { Node } from "../../api/types";
import { t } from "../../i18n";
import { documentHref } from "../../routes";
import type { Range } from "../../text";

interface OutlineProps {
  docId: string;
  l2: readonly Node[];
  l3: readonly Node[];
  target: Range | undefined;
}

export function Outline({ docId, l2, l3, target }: OutlineProps) {
  const inside = new Map<string, Node[]>();
  for (const node of l3) {
    const siblings = inside.get(node.parent_id ?? "") ?? [];
    siblings.push(node);
    inside.set(node.parent_id ?? "", siblings);
  }
  const isHere = ({ char_start, char_end }: Node) =>
    target !== undefined && target.start >= char_start && target.start < char_end;
  const here = useRef<HTMLAnchorElement>(null);
  useEffect(() => here.current?.scrollIntoView({ block: "nearest" }), [target?.start]);
  const link = (node: Node) => (
    <a
      ref={isHere(node) ? here : null}
      href={documentHref(docId, { start: node.char_start, end: node.char_end }, node.page_start)}
      aria-current={isHere(node) ? "location" : undefined}
      dir="auto"
      title={node.summary}
    >
      {node.title}
    </a>
  );
  return (
    <nav class="outline" aria-label={t("document.outline")}>
      <ul>
        {l2.map((section) => {
          const below = inside.get(section.node_id) ?? [];
          // A section without parts of its own has one passage, which is the section.
          const [only] = below;
          const isPlain = below.length === 0 || (below.length === 1 && only?.char_start === section.char_start);
          return (
            <li key={section.node_id}>
              {isPlain ? (
                link(section)
              ) : (
                <details open={isHere(section) || l2.length === 1}>
                  <summary><span dir="auto">{section.title}</span></summary>
                  <ul>{below.map((node) => <li key={node.node_id}>{link(node)}</li>)}</ul>
                </details>
              )}
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
