// A page of a PDF as an image, with the passage marked on it. Image and boxes come from the same reader of the same file.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, urlOf } from "../../api/client";
import { t } from "../../i18n";
import type { Range } from "../../text";
import { IconButton } from "../../ui/controls";
import { Loading, Notice } from "../../ui/feedback";
import { useResource } from "../../use_resource";

interface PageViewProps {
  docId: string;
  title: string;
  page: number;
  /** The number of pages; null if it is not known. */
  pages: number | null;
  target: Range | undefined;
  onPage: (page: number) => void;
  /** The version of the document, so that a new one is not shown by an image of the old. */
  version: string;
}

/** The widths in which pages are drawn, so that the server draws few of each. */
const WIDTHS = [600, 1000, 1600, 2000];

export function PageView({ docId, title, page, pages, target, onPage, version }: PageViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState<number>();
  const [loaded, setLoaded] = useState<{ source: string; state: "shown" | "failed" }>();
  useLayoutEffect(() => {
    const wanted = (frame.current?.clientWidth ?? 800) * devicePixelRatio;
    setWidth(WIDTHS.find((width) => width >= wanted) ?? 2000);
  }, []);
  const boxes = useResource(
    async (signal) =>
      target === undefined
        ? undefined
        : get("/api/v1/documents/{doc_id}/pages/{n}/boxes", {
            path: { doc_id: docId, n: String(page) },
            query: { char_start: target.start, char_end: target.end },
            signal,
          }),
    [docId, page, target?.start, target?.end, version],
  );
  const source = urlOf("/api/v1/documents/{doc_id}/pages/{n}", { path: { doc_id: docId, n: page }, query: { width, version } });
  const state = loaded?.source === source ? loaded.state : "loading";
  const isLast = pages !== null && page >= pages;
  return (
    <div class="page-view" ref={frame}>
      <div class="page-controls">
        <IconButton icon="back" label={t("pager.previous")} disabled={page <= 1} onClick={() => onPage(page - 1)} />
        <span role="status">{pages === null ? t("document.page_of", { page }) : t("common.of", { done: page, total: pages })}</span>
        <IconButton icon="right" label={t("pager.next")} disabled={isLast} onClick={() => onPage(page + 1)} />
      </div>
      {state === "failed" && <Notice kind="warning">{t("document.no_page")}</Notice>}
      {state === "loading" && <Loading rows={6} />}
      <div class={state === "shown" ? "page-image" : "page-image hidden"}>
        {width !== undefined && (
          <img
            key={source}
            src={source}
            alt={t("document.page_image", { page, title })}
            onLoad={() => setLoaded({ source, state: "shown" })}
            onError={() => setLoaded({ source, state: "failed" })}
          />
        )}
        {boxes.data && state === "shown" && <Boxes {...boxes.data} />}
      </div>
    </div>
  );
}

function Boxes({ width, height, boxes }: { width: number; height: number; boxes: number[][] }) {
  const first = useRef<HTMLSpanElement>(null);
  useEffect(() => first.current?.scrollIntoView({ block: "nearest" }), [boxes]);
  return (
    <>
      {boxes.map(([x0 = 0, y0 = 0, x1 = 0, y1 = 0], at) => (
        <span
          key={at}
          ref={at === 0 ? first : null}
          class="page-box"
          style={{
            left: `${(100 * x0) / width}%`,
            top: `${(100 * y0) / height}%`,
            width: `${(100 * (x1 - x0)) / width}%`,
            height: `${(100 * (y1 - y0)) / height}%`,
          }}
        />
      ))}
    </>
  );
}
