// A document: the tree of its layers beside its text, or beside its pages.
import { useLocation, useRoute } from "preact-iso/router";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Code, del, get } from "../api/client";
import { useTaskEvents } from "../api/task_events";
import type { Document, DocumentDetail, Node, Task } from "../api/types";
import { number, t } from "../i18n";
import { bytes } from "../i18n/format";
import { documentHref, spaceHref, taskHref } from "../routes";
import { mayChange } from "../rights";
import { user } from "../session";
import { isolated, type Range } from "../text";
import { Button, CopyButton } from "../ui/controls";
import { Badge, Fact, Facts, Time } from "../ui/data";
import { Confirm } from "../ui/dialog";
import { ErrorMessage, Loading, Notice, say, sayCopied } from "../ui/feedback";
import { Icon } from "../ui/icon";
import { Page } from "../ui/page";
import { SpaceTitle } from "../ui/space";
import { useResource } from "../use_resource";
import { EditDialog, ReplaceDialog } from "./document/edit";
import { Outline } from "./document/outline";
import { PageView } from "./document/page_view";
import { TextView } from "./document/text_view";
import { FailedPage } from "./errors";
import { newer } from "./task_changes";

export function DocumentPage() {
  const { params: { id = "" } } = useRoute();
  const { query, route } = useLocation();
  const detail = useResource((signal) => get("/api/v1/documents/{doc_id}", { path: { doc_id: id }, signal }), [id]);
  const [replaced, setReplaced] = useState<{ docId: string; taskId: string }>();
  useTaskEvents(
    (task) => task.doc_id === id && task.status === "done" && detail.reload(),
    () => detail.reload(),
  );
  const isGone = detail.error?.code === Code.notFound;
  if (detail.error && (isGone || !detail.data)) return <FailedPage error={detail.error} title={t("nav.documents")} onRetry={detail.reload} />;
  if (!detail.data) return <Page title={t("nav.documents")} width="full"><Loading rows={12} /></Page>;
  const target = parseRange(query["at"]);
  const page = Number(query["page"] ?? "") || firstPage(detail.data, target);
  const views = viewsOf(detail.data);
  const view = views.find((view) => view === query["view"]) ?? views[0] ?? "text";
  const hasTabs = views.length > 1;
  const go = (change: Record<string, string>) => {
    const search = new URLSearchParams({ ...query, ...change }).toString();
    route(`${documentHref(id)}?${search}`, true);
  };
  const title = detail.data.l1.title || detail.data.l1.source || id;
  return (
    <Page title={title} width="full" above={{ href: "/documents", label: t("nav.documents") }} actions={<Actions detail={detail.data} onChanged={detail.reload} onReplaced={(taskId) => setReplaced({ docId: id, taskId })} />}>
      {replaced?.docId === id && <Replacement key={replaced.taskId} taskId={replaced.taskId} onDone={() => setReplaced(undefined)} />}
      <div class="document">
        <div class="document-side">
          <Outline docId={id} l2={detail.data.l2} l3={detail.data.l3} target={target} />
          <Details detail={detail.data} />
        </div>
        <div class="document-content">
          {hasTabs && <Tabs views={views} view={view} onSelect={(view) => go({ view })} />}
          <div {...(hasTabs && { id: "view", role: "tabpanel", "aria-labelledby": `tab-${view}` })}>
            {view === "page" ? (
              <PageView
                docId={id}
                title={title}
                page={page}
                pages={detail.data.pages ?? null}
                target={target}
                targetPages={target && pagesOfRange(detail.data, target)}
                version={detail.data.l1.updated_at}
                onPage={(page) => go({ page: String(page) })}
              />
            ) : (
              <ExtractedText detail={detail.data} target={target} isFormatted={view === "formatted"} />
            )}
          </div>
        </div>
      </div>
    </Page>
  );
}

/** A new version that is being read, until it is shown. One that failed is told: the document is what it was. */
function Replacement({ taskId, onDone }: { taskId: string; onDone: () => void }) {
  const [task, setTask] = useState<Task>();
  // An answer may come after an event that is newer.
  const take = (task: Task) => setTask((known) => (known === undefined ? task : newer(known, task)));
  const load = () => void get("/api/v1/documents/tasks/{task_id}", { path: { task_id: taskId } }).then(take, () => {});
  useTaskEvents((task) => task.task_id === taskId && take(task), load);
  useEffect(load, []);
  useEffect(() => {
    if (task?.status === "done") onDone();
  }, [task?.status]);
  const hasFailed = task?.status === "failed";
  return (
    <Notice kind={hasFailed ? "warning" : "info"}>
      <div role="status">
        <p>{t(hasFailed ? "document.not_replaced" : "document.replacing")}</p>
        {task?.error && <p dir="auto">{task.error.message}</p>}
      </div>
      <a href={taskHref(taskId)}>{t("add.task")}</a>
    </Notice>
  );
}

type View = "page" | "formatted" | "text";

/** The views of a document, the first of which is shown if none is asked for. */
function viewsOf({ page_images, file, l1 }: DocumentDetail): View[] {
  if (page_images) return ["page", "text"];
  const isMarkdown = file?.content_type.startsWith("text/markdown") && l1.char_count <= MOST_FORMATTED;
  return isMarkdown ? ["formatted", "text"] : ["text"];
}

/** The longest text that is shown with its format, in characters: to parse more would hold the page up. */
const MOST_FORMATTED = 200_000;

interface TabsProps {
  views: readonly View[];
  view: View;
  onSelect: (view: View) => void;
}

/** The views of a document. The arrow keys choose, as in every list of tabs. */
function Tabs({ views, view, onSelect }: TabsProps) {
  const turn = (event: KeyboardEvent) => {
    const other = views.find((each) => each !== view);
    if (other === undefined || (event.key !== "ArrowLeft" && event.key !== "ArrowRight")) return;
    onSelect(other);
    document.getElementById(`tab-${other}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={t("document.view")} onKeyDown={turn}>
      {views.map((each) => (
        <button
          key={each}
          id={`tab-${each}`}
          type="button"
          role="tab"
          aria-selected={each === view}
          aria-controls="view"
          tabIndex={each === view ? 0 : -1}
          onClick={() => onSelect(each)}
        >
          {t(`document.${each}`)}
        </button>
      ))}
    </div>
  );
}

interface TextProps {
  detail: DocumentDetail;
  target: Range | undefined;
  /** Whether headings, lists and tables are shown as such. */
  isFormatted: boolean;
}

function ExtractedText({ detail, target, isFormatted }: TextProps) {
  const { doc_id, content_sha256 } = detail.l1;
  const text = useResource(
    (signal) => get("/api/v1/documents/{doc_id}/text", { path: { doc_id }, signal }),
    [doc_id, content_sha256],
  );
  // The parser of Markdown is loaded where it is needed.
  const markdown = useResource(async () => (isFormatted ? import("./document/markdown_view") : undefined), [isFormatted]);
  const starts = useMemo(() => [...detail.l2, ...detail.l3].map(({ char_start }) => char_start), [detail]);
  if (text.error) return <ErrorMessage error={text.error} onRetry={text.reload} />;
  if (!text.data || (isFormatted && !markdown.data && !markdown.error)) return <Loading rows={16} />;
  const plain = <TextView text={text.data.text} starts={starts} target={target} />;
  if (!isFormatted || !markdown.data) return plain;
  return <markdown.data.MarkdownView text={text.data.text} plain={plain} target={target} />;
}

interface ActionsProps {
  detail: DocumentDetail;
  onChanged: () => void;
  onReplaced: (taskId: string) => void;
}

function Actions({ detail, onChanged, onReplaced }: ActionsProps) {
  const { l1, file } = detail;
  const { route } = useLocation();
  const [open, setOpen] = useState<"edit" | "replace" | "delete">();
  const isMine = useMayChange(l1);
  const close = () => setOpen(undefined);
  return (
    <>
      <CopyButton label={t("document.link")} text={() => location.href} onDone={(isCopied) => sayCopied(isCopied, t("document.linked"))} />
      {file?.available && (
        <a class="button" href={`/api/v1/documents/${l1.doc_id}/file`} download>
          <Icon name="download" />
          {t("document.original")}
        </a>
      )}
      {isMine && (
        <>
          <Button icon="edit" onClick={() => setOpen("edit")}>{t("document.edit")}</Button>
          <Button icon="upload" onClick={() => setOpen("replace")}>{t("document.replace")}</Button>
          <Button icon="trash" variant="danger" onClick={() => setOpen("delete")}>{t("document.delete")}</Button>
        </>
      )}
      {open === "edit" && (
        <EditDialog
          document={l1}
          onClose={close}
          onDone={() => {
            onChanged();
            say(t("document.saved"));
          }}
        />
      )}
      {open === "replace" && (
        <ReplaceDialog
          docId={l1.doc_id}
          title={l1.title}
          source={l1.source}
          onClose={close}
          onDone={(taskId) => {
            close();
            onReplaced(taskId);
          }}
        />
      )}
      {open === "delete" && (
        <Confirm
          title={t("document.delete")}
          confirm={t("common.delete")}
          onClose={close}
          onConfirm={async () => {
            await del("/api/v1/documents/{doc_id}", { path: { doc_id: l1.doc_id } });
            say(t("document.deleted"));
            route("/documents");
          }}
        >
          <p>{t("document.delete_text", { title: isolated(l1.title || l1.source) })}</p>
        </Confirm>
      )}
    </>
  );
}

function useMayChange(document: Document): boolean {
  const space = useResource(
    async (signal) =>
      user.value === null ? undefined : get("/api/v1/spaces/{space}", { path: { space: document.space }, signal }),
    [document.space, user.value?.username],
  );
  return mayChange(document, space.data);
}

function Details({ detail }: { detail: DocumentDetail }) {
  const { l1, file } = detail;
  const metadata = Object.entries(l1.metadata);
  return (
    <aside class="details stack" aria-label={t("document.details")}>
      {l1.summary !== "" && (
        <section class="stack-small">
          <h2>{t("document.summary")}</h2>
          <p dir="auto">{l1.summary}</p>
        </section>
      )}
      {l1.keywords.length > 0 && (
        <ul class="row" aria-label={t("document.keywords")}>
          {l1.keywords.map((keyword) => <li key={keyword}><Badge><bdi>{keyword}</bdi></Badge></li>)}
        </ul>
      )}
      <h2>{t("document.details")}</h2>
      <Facts>
        <Fact name={t("document.space")}><a href={spaceHref(l1.space)}><SpaceTitle name={l1.space} /></a></Fact>
        <Fact name={t("document.category")}>{l1.category ? <bdi>{l1.category}</bdi> : t("category.none")}</Fact>
        <Fact name={t("document.source")}><bdi>{l1.source}</bdi></Fact>
        {l1.language && <Fact name={t("document.language")}>{l1.language}</Fact>}
        <Fact name={t("document.characters")}>{number(l1.char_count)}</Fact>
        <Fact name={t("document.chunks")}>{number(detail.chunk_count)}</Fact>
        <Fact name={t("common.created")}><Time at={l1.created_at} /> <bdi>{t("common.by", { name: l1.created_by })}</bdi></Fact>
        <Fact name={t("common.updated")}><Time at={l1.updated_at} /></Fact>
        {file && <Fact name={file.available ? t("common.download") : t("document.original_missing")}><bdi>{file.original_filename}</bdi>, {bytes(file.size_bytes)}</Fact>}
      </Facts>
      {metadata.length > 0 && (
        <>
          <h2>{t("document.metadata")}</h2>
          <Facts>{metadata.map(([key, value]) => <Fact key={key} name={key}><bdi>{value}</bdi></Fact>)}</Facts>
        </>
      )}
    </aside>
  );
}

/** The page on which a range begins; 1 if it is not known. */
function firstPage({ l2, l3 }: DocumentDetail, target: Range | undefined): number {
  if (target === undefined) return 1;
  const holder = [...l3, ...l2].find(({ char_start, char_end }) => target.start >= char_start && target.start < char_end);
  return holder?.page_start ?? 1;
}

/** The pages of the smallest parts that hold a range, with the last one; nothing if they are not known. */
function pagesOfRange({ l2, l3 }: DocumentDetail, target: Range): Range | undefined {
  const overlaps = ({ char_start, char_end }: Node) => char_start < target.end && char_end > target.start;
  const inside = l3.filter(overlaps);
  const holders = inside.length > 0 ? inside : l2.filter(overlaps);
  const pages = holders.flatMap(({ page_start, page_end }) => [page_start ?? [], page_end ?? []].flat());
  return pages.length === 0 ? undefined : { start: Math.min(...pages), end: Math.max(...pages) };
}

/** A range as the address has it: `120-480`. */
function parseRange(text: string | undefined): Range | undefined {
  const [, start, end] = text?.match(/^(\d+)-(\d+)$/) ?? [];
  if (start === undefined || end === undefined) return undefined;
  return { start: Number(start), end: Number(end) };
}
