// A passage that was found: the way that led to it, its words, and what can be done with it.
import type { SearchResult } from "../../api/types";
import { t } from "../../i18n";
import { documentHref } from "../../routes";
import { escapeMarkdown, excerpt, pieces, type Range } from "../../text";
import { Badge } from "../../ui/data";
import { Button, CopyButton } from "../../ui/controls";
import { sayCopied } from "../../ui/feedback";
import { SpaceBadge } from "../../ui/space";

/** The length of what is shown of a passage, in code points. */
const EXCERPT_LENGTH = 420;

interface ResultProps {
  result: SearchResult;
  /** The number by which a summary names it. */
  marker: number;
  onExplain: () => void;
}

export function Result({ result, marker, onExplain }: ResultProps) {
  const { title, path, text, highlights, space, category } = result;
  const ranges = highlights.map(([start = 0, end = 0]) => ({ start, end }));
  return (
    <li class="result" id={`result-${marker}`} tabIndex={-1}>
      <article>
        <h2>
          <span class="result-number" aria-hidden="true">[{marker}] </span>
          <a href={resultHref(result)} dir="auto">{title === "" ? result.source : title}</a>
        </h2>
        <Way path={path} pages={pagesText(result)} />
        <Passage text={text} marked={ranges} />
        <footer>
          <SpaceBadge name={space} />
          {category !== "" && <Badge><bdi>{category}</bdi></Badge>}
          <span class="result-source"><bdi>{result.source}</bdi></span>
          <span class="result-actions">
            <CopyButton label={t("search.cite")} text={() => citation(result)} onDone={(isCopied) => sayCopied(isCopied, t("search.cited"))} />
            <Button variant="quiet" onClick={onExplain}>{t("search.explain")}</Button>
          </span>
        </footer>
      </article>
    </li>
  );
}

/** Document › section › passage: the headings above a passage, and its page. */
export function Way({ path, pages }: { path: readonly string[]; pages: string }) {
  if (path.length === 0 && pages === "") return null;
  return (
    <p class="way">
      {path.map((heading, at) => (
        <span key={at}>{at > 0 && <span aria-hidden="true"> › </span>}<bdi>{heading}</bdi></span>
      ))}
      {pages !== "" && <Badge kind="accent">{pages}</Badge>}
    </p>
  );
}

function Passage({ text, marked }: { text: string; marked: Range[] }) {
  const cut = excerpt(text, marked, EXCERPT_LENGTH);
  return (
    <p class="passage" dir="auto">
      {cut.isCutBefore && "… "}
      {pieces(cut.text, cut.marked).map(({ text, isMarked }, at) => (isMarked ? <mark key={at}>{text}</mark> : text))}
      {cut.isCutAfter && " …"}
    </p>
  );
}

export function resultHref(result: SearchResult): string {
  return documentHref(result.doc_id, { start: result.char_start, end: result.char_end }, result.page_start);
}

export function pagesText({ page_start, page_end }: { page_start: number | null; page_end: number | null }): string {
  if (page_start === null) return "";
  if (page_end === null || page_end === page_start) return t("search.page", { page: page_start });
  return t("search.pages", { from: page_start, to: page_end });
}

/** A quotation in Markdown with a link to its place. */
export function citation(result: SearchResult): string {
  const quoted = result.text.trim().split(/\n+/).map((line) => `> ${line}`).join("\n");
  const place = [result.title || result.source, ...result.path].map(escapeMarkdown).join(" › ");
  const pages = pagesText(result);
  const name = pages === "" ? place : `${place}, ${pages}`;
  return `${quoted}\n>\n> — [${name}](${location.origin}${resultHref(result)})\n`;
}
