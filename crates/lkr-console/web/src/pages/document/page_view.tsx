// A page of a PDF as an image, with the passage marked on it. Image and boxes come from the same reader of the same file.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, urlOf } from "../../api/client";
import { t } from "../../i18n";
import { isolated, type Range } from "../../text";
import { IconButton } from "../../ui/controls";
import { Loading, Notice } from "../../ui/feedback";
import { useResource } from "../../use_resource";
import { PassagePages } from "./passage_pages";
import { useZoom, ZoomControl } from "./zoom";

interface PageViewProps {
  docId: string;
  title: string;
  page: number;
  /** The number of pages; null if it is not known. */
  pages: number | null;
  target: Range | undefined;
  /** The pages on which the passage may be. */
  targetPages: Range | undefined;
  onPage: (page: number) => void;
  /** The version of the document, so that a new one is not shown by an image of the old. */
  version: string;
}

/** The widths in which pages are drawn, so that the server draws few of each. */
const WIDTHS = [600, 1000, 1600, 2000];

export function PageView({ docId, title, page, pages, target, targetPages, onPage, version }: PageViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [fit, setFit] = useState<number>();
  const [loaded, setLoaded] = useState<{ source: string; state: "shown" | "failed" }>();
  useLayoutEffect(() => setFit(frame.current?.clientWidth ?? 800), []);
  // Without a passage, the size of the page is asked for alone.
  const { start, end } = target ?? { start: 0, end: 1 };
  const boxes = useResource(
    (signal) =>
      get("/api/v1/documents/{doc_id}/pages/{n}/boxes", {
        path: { doc_id: docId, n: String(page) },
        query: { char_start: start, char_end: end },
        signal,
      }),
    [docId, page, start, end, version],
  );
  const zoom = useZoom(fit ?? 800, boxes.data?.width);
  const drawn = zoom.width * devicePixelRatio;
  const width = fit === undefined ? undefined : (WIDTHS.find((width) => width >= drawn) ?? 2000);
  const source = urlOf("/api/v1/documents/{doc_id}/pages/{n}", { path: { doc_id: docId, n: page }, query: { width, version } });
  const state = loaded?.source === source ? loaded.state : "loading";
  const isLast = pages !== null && page >= pages;
  return (
    <div class="page-view" ref={frame}>
      <div class="page-controls">
        <IconButton icon="back" label={t("pager.previous")} disabled={page <= 1} onClick={() => onPage(page - 1)} />
        <span role="status">{pages === null ? t("document.page_of", { page }) : t("common.of", { done: page, total: pages })}</span>
        <IconButton icon="right" label={t("pager.next")} disabled={isLast} onClick={() => onPage(page + 1)} />
        <ZoomControl zoom={zoom} />
      </div>
      {target && targetPages && (
        <PassagePages docId={docId} version={version} target={target} within={targetPages} page={page} onPage={onPage} />
      )}
      {state === "failed" && <Notice kind="warning">{t("document.no_page")}</Notice>}
      {state === "loading" && <Loading rows={6} />}
      <div class="page-scroll" tabIndex={0} role="region" aria-label={t("document.page_of", { page })}>
        <div class={state === "shown" ? "page-image" : "page-image hidden"} style={{ width: zoom.level === "fit" ? "100%" : `${zoom.width}px` }}>
          {width !== undefined && (
            <img
              key={source}
              src={source}
              alt={t("document.page_image", { page, title: isolated(title) })}
              onLoad={() => setLoaded({ source, state: "shown" })}
              onError={() => setLoaded({ source, state: "failed" })}
            />
          )}
          {target && boxes.data && state === "shown" && <Boxes {...boxes.data} />}
        </div>
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
