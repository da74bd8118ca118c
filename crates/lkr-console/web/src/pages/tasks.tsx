// Tasks: what is being done, was done, and failed.
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api/client";
import { useTaskEvents } from "../api/task_events";
import type { Task } from "../api/types";
import { t, tData } from "../i18n";
import { documentHref, taskHref } from "../routes";
import { knownSpaces } from "../known";
import { mayChangeTask } from "../rights";
import { Button, Select } from "../ui/controls";
import { Time } from "../ui/data";
import { Empty, ErrorMessage, Loading } from "../ui/feedback";
import { Page } from "../ui/page";
import { Pager, usePages } from "../ui/pager";
import { SpaceTitle } from "../ui/space";
import { useAction } from "../use_resource";
import { PAGE_SIZE, addChange, merged } from "./task_changes";
import { TaskProgress, TaskStatus } from "./task_progress";

const STATUSES = ["pending", "running", "done", "failed"] as const;

export function TasksPage() {
  const { query, route } = useLocation();
  const status = STATUSES.find((status) => status === query["status"]);
  const pages = usePages<Task>(
    (offset, signal) =>
      get("/api/v1/documents/tasks", {
        query: { limit: PAGE_SIZE, ...(status && { status }), ...(offset !== undefined && { offset }) },
        signal,
      }),
    [status],
  );
  const changed = useRef(new Map<string, Task>()).current;
  const [, setChanges] = useState(0);
  useTaskEvents((task) => {
    addChange(changed, task);
    setChanges((count) => count + 1);
  }, pages.reload);
  const tasks = merged(pages.data?.items ?? [], changed, pages.page === 1, status);
  return (
    <Page title={t("nav.tasks")}>
      <div class="fields">
        <Select
          label={t("task.status")}
          value={status ?? ""}
          choices={[{ value: "", label: t("common.all") }, ...STATUSES.map((value) => ({ value, label: t(`task.status.${value}`) }))]}
          onChange={(value) => route(value === "" ? "/tasks" : `/tasks?status=${value}`, true)}
        />
      </div>
      <ErrorMessage error={pages.error} onRetry={pages.reload} />
      {pages.data === undefined && pages.isLoading ? <Loading rows={8} /> : <TaskTable tasks={tasks} onChange={pages.reload} />}
      <Pager {...pages} />
    </Page>
  );
}

function TaskTable({ tasks, onChange }: { tasks: Task[]; onChange: () => void }) {
  if (tasks.length === 0) return <Empty icon="list" title={t("task.none")} />;
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={t("nav.tasks")}>
      <table class="cards tasks">
        <thead>
          <tr>
            <th scope="col">{t("task.what")}</th>
            <th scope="col">{t("task.status")}</th>
            <th scope="col">{t("task.progress")}</th>
            <th scope="col">{t("common.updated")}</th>
            <th scope="col"><span class="visually-hidden">{t("common.actions")}</span></th>
          </tr>
        </thead>
        <tbody>{tasks.map((task) => <TaskRow key={task.task_id} task={task} onChange={onChange} />)}</tbody>
      </table>
    </div>
  );
}

function TaskRow({ task, onChange }: { task: Task; onChange: () => void }) {
  return (
    <tr>
      <th scope="row">
        <a href={taskHref(task.task_id)}><bdi>{taskName(task)}</bdi></a>
        <small class="below">
          {tData("task.kind", task.kind)} · <bdi>{task.created_by}</bdi>{task.space && <> · <SpaceTitle name={task.space} /></>}
        </small>
      </th>
      <td data-label={t("task.status")}><TaskStatus task={task} /></td>
      <td data-label={t("task.progress")}>
        {task.status === "running" && <TaskProgress task={task} />}
        {task.error && <span class="field-error">{task.error.message}</span>}
        {task.status === "done" && task.doc_id && <a href={documentHref(task.doc_id)}>{t("task.document")}</a>}
      </td>
      <td data-label={t("common.updated")}><Time at={task.updated_at} /></td>
      <td class="actions"><TaskActions task={task} onChange={onChange} /></td>
    </tr>
  );
}

/** What a task is about, in the person's words. */
export function taskName(task: Task): string {
  const result = task.result as { title?: string } | undefined;
  return result?.title || task.title || tData("task.kind", task.kind);
}

export function TaskActions({ task, onChange }: { task: Task; onChange: () => void }) {
  const path = { task_id: task.task_id };
  const cancel = useAction(async () => {
    await post("/api/v1/documents/tasks/{task_id}/cancel", { path });
    onChange();
  });
  const retry = useAction(async () => {
    await post("/api/v1/documents/tasks/{task_id}/retry", { path });
    onChange();
  });
  useEffect(knownSpaces.need, []);
  if (!mayChangeTask(task)) return null;
  return (
    <>
      {(task.status === "pending" || task.status === "running") && task.kind !== "delete_space" && (
        <Button variant="quiet" icon="stop" isBusy={cancel.isBusy} onClick={() => void cancel.run()}>{t("common.cancel")}</Button>
      )}
      {task.error?.retryable && (
        <Button variant="quiet" icon="retry" isBusy={retry.isBusy} onClick={() => void retry.run()}>{t("common.retry")}</Button>
      )}
      <ErrorMessage error={cancel.error ?? retry.error} />
    </>
  );
}
