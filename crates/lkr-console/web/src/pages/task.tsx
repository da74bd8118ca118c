// One task, as it goes on.
import { useLocation, useRoute } from "preact-iso/router";
import { useState } from "preact/hooks";
import { del, get } from "../api/client";
import { useTaskEvents } from "../api/task_events";
import type { Task } from "../api/types";
import { number, t, tData } from "../i18n";
import { duration } from "../i18n/format";
import { documentHref, spaceHref } from "../routes";
import { mayChangeTask } from "../rights";
import { Button } from "../ui/controls";
import { Fact, Facts, Time } from "../ui/data";
import { Confirm } from "../ui/dialog";
import { Loading, Notice } from "../ui/feedback";
import { Icon } from "../ui/icon";
import { Page, Section } from "../ui/page";
import { SpaceTitle } from "../ui/space";
import { useResource } from "../use_resource";
import { FailedPage } from "./errors";
import { TaskProgress, TaskStatus } from "./task_progress";
import { newer } from "./task_changes";
import { TaskActions, taskName } from "./tasks";

/** The stages of a document's task, in order. */
const STAGES = ["queued", "parse", "layer", "describe", "embed", "publish"];

export function TaskPage() {
  const { params: { id = "" } } = useRoute();
  const { route } = useLocation();
  const task = useResource((signal) => get("/api/v1/documents/tasks/{task_id}", { path: { task_id: id }, signal }), [id]);
  const [isDeleting, setDeleting] = useState(false);
  // An answer may come after an event that is newer, and the page may go on to another task.
  const [heard, setHeard] = useState<Task>();
  useTaskEvents((changed) => {
    if (changed.task_id === id) setHeard((known) => (known?.task_id === id ? newer(known, changed) : changed));
  }, task.reload);
  const loaded = task.data?.task_id === id ? task.data : undefined;
  const data = loaded && newer(loaded, heard?.task_id === id ? heard : undefined);
  const above = { href: "/tasks", label: t("nav.tasks") };
  if (task.error && !data) return <FailedPage error={task.error} title={t("nav.tasks")} onRetry={task.reload} />;
  if (!data) return <Page title={t("nav.tasks")}><Loading /></Page>;
  const hasEnded = data.status === "done" || data.status === "failed";
  return (
    <Page
      title={taskName(data)}
      above={above}
      actions={
        <>
          <TaskActions task={data} onChange={task.reload} />
          {hasEnded && mayChangeTask(data) && <Button icon="trash" onClick={() => setDeleting(true)}>{t("task.delete")}</Button>}
        </>
      }
    >
      <div class="row"><TaskStatus task={data} /><span>{tData("task.kind", data.kind)}</span></div>
      {data.error && <Failure error={data.error} />}
      {!hasEnded && <TaskProgress task={data} />}
      {(data.kind === "ingest" || data.kind === "replace") && <Stages task={data} />}
      <Outcome task={data} />
      <Facts>
        <Fact name={t("common.created")}><Time at={data.created_at} /></Fact>
        <Fact name={t("common.updated")}><Time at={data.updated_at} /></Fact>
        <Fact name={t("task.by")}><bdi>{data.created_by}</bdi></Fact>
        {data.space && <Fact name={t("document.space")}><a href={spaceHref(data.space)}><SpaceTitle name={data.space} /></a></Fact>}
        <Fact name={t("task.attempts")}>{number(data.attempts)}</Fact>
        <Fact name={t("task.id")}><code>{data.task_id}</code></Fact>
      </Facts>
      {isDeleting && (
        <Confirm
          title={t("task.delete")}
          confirm={t("common.delete")}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await del("/api/v1/documents/tasks/{task_id}", { path: { task_id: id } });
            route("/tasks");
          }}
        >
          {t("task.delete_text")}
        </Confirm>
      )}
    </Page>
  );
}

function Failure({ error }: { error: NonNullable<Task["error"]> }) {
  return (
    <div class="error-message" role="alert">
      <Icon name="warning" />
      <p>
        {error.message}{" "}
        <small>{t("task.failed_in", { stage: tData("task.stage", error.stage), code: String(error.code) })}</small>
        {!error.retryable && <small class="below">{t("task.not_retryable")}</small>}
      </p>
    </div>
  );
}

/** The stages, and which of them are behind. */
function Stages({ task }: { task: Task }) {
  const at = task.status === "done" ? STAGES.length : STAGES.indexOf(task.stage);
  return (
    <ol class="stages">
      {STAGES.map((stage, place) => {
        const state = place < at ? "behind" : place === at ? (task.status === "failed" ? "failed" : "here") : "ahead";
        return (
          <li key={stage} class={state} aria-current={state === "here" ? "step" : undefined}>
            {state === "behind" && <Icon name="check" size={14} />}
            {state === "failed" && <Icon name="close" size={14} />}
            {tData("task.stage", stage)}
          </li>
        );
      })}
    </ol>
  );
}

interface DocumentResult {
  title?: string;
  category?: string;
  language?: string;
  duplicate_of?: { doc_id: string; distance: number } | null;
  counts?: { l1: number; l2: number; l3: number; chunks: number };
  warnings?: string[];
  elapsed_ms?: number;
  deleted_total?: number;
}

function Outcome({ task }: { task: Task }) {
  const result = task.result as DocumentResult | undefined;
  if (result === undefined) return null;
  const { duplicate_of: duplicate, counts, warnings = [], elapsed_ms, category, language, deleted_total } = result;
  return (
    <Section title={t("task.result")}>
      {duplicate && (
        <Notice kind="warning">
          {t(duplicate.distance === 0 ? "add.duplicate" : "add.near_duplicate", { n: duplicate.distance })}{" "}
          <a href={documentHref(duplicate.doc_id)}>{t("add.duplicate_link")}</a>
        </Notice>
      )}
      {warnings.map((warning) => <Notice key={warning} kind="warning">{warning}</Notice>)}
      <Facts>
        {counts && <Fact name={t("layer.l2")}>{number(counts.l2)}</Fact>}
        {counts && <Fact name={t("layer.l3")}>{number(counts.l3)}</Fact>}
        {counts && <Fact name={t("layer.chunks")}>{number(counts.chunks)}</Fact>}
        {category && <Fact name={t("document.category")}><bdi>{category}</bdi></Fact>}
        {language && <Fact name={t("document.language")}>{language}</Fact>}
        {deleted_total !== undefined && <Fact name={t("task.deleted_points")}>{number(deleted_total)}</Fact>}
        {elapsed_ms !== undefined && <Fact name={t("task.took")}>{duration(elapsed_ms)}</Fact>}
      </Facts>
      {task.doc_id && !duplicate && task.kind !== "delete_where" && (
        <div><a class="button" href={documentHref(task.doc_id)}>{t("task.document")}</a></div>
      )}
    </Section>
  );
}
