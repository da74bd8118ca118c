// Deleting many documents: those that were selected, or all that the filter shows.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../../api/client";
import { useTaskEvents } from "../../api/task_events";
import type { Expression, Task } from "../../api/types";
import { t } from "../../i18n";
import { taskHref } from "../../routes";
import { Button } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { ErrorMessage, Loading, Notice } from "../../ui/feedback";
import { useResource } from "../../use_resource";
import { TaskProgress } from "../task_progress";
import { newer } from "../task_changes";
import { amongIds, expressionOf, given, type Filter } from "./filter";

interface BarProps {
  filter: Filter;
  selected: ReadonlySet<string>;
  onClear: () => void;
  /** Documents were deleted. */
  onDone: () => void;
}

/** What can be done with the selected documents, or with all that the filter shows. */
export function DeletionBar({ filter, selected, onClear, onDone }: BarProps) {
  const [asked, setAsked] = useState<"selected" | "filter">();
  const [taskId, setTaskId] = useState<string>();
  const hasFilter = Object.keys(given(filter)).length > 0;
  const start = (taskId: string) => {
    setTaskId(taskId);
    if (asked === "selected") onClear();
  };
  return (
    <>
      {taskId !== undefined && <Deletion key={taskId} taskId={taskId} onDone={onDone} />}
      {(selected.size > 0 || hasFilter) && (
        <div class="selection row">
          {selected.size > 0 && (
            <>
              <span role="status">{t("documents.selected", { n: selected.size })}</span>
              <Button variant="danger" icon="trash" onClick={() => setAsked("selected")}>{t("documents.delete_selected")}</Button>
              <Button variant="quiet" onClick={onClear}>{t("documents.clear_selection")}</Button>
            </>
          )}
          {selected.size === 0 && (
            <Button variant="quiet" icon="trash" onClick={() => setAsked("filter")}>{t("documents.delete_filtered")}</Button>
          )}
        </div>
      )}
      {asked && (
        <DeleteDialog
          load={asked === "filter" ? () => expressionOf(filter) : async () => ({ where: amongIds([...selected]), isWhole: true })}
          expected={asked === "selected" ? selected.size : undefined}
          onStarted={start}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

interface DialogProps {
  load: () => Promise<{ where: Expression; isWhole: boolean }>;
  /** How many documents were selected. */
  expected: number | undefined;
  onStarted: (taskId: string) => void;
  onClose: () => void;
}

/** Counts what would be deleted, and asks with that number. */
function DeleteDialog({ load, expected, onStarted, onClose }: DialogProps) {
  const counted = useResource(async (signal) => {
    const { where, isWhole } = await load();
    const answer = await post("/api/v1/documents/delete", { body: { where, dry_run: true }, signal });
    return { where, isWhole, count: "documents" in answer ? answer.documents : 0 };
  }, []);
  const { data } = counted;
  const count = data?.count ?? 0;
  const remove = async () => {
    if (data === undefined) return;
    const answer = await post("/api/v1/documents/delete", { body: { where: data.where, dry_run: false } });
    if ("task_id" in answer) onStarted(answer.task_id);
  };
  return (
    <Confirm
      title={data ? t("documents.delete_ask", { n: count }) : t("documents.counting")}
      confirm={t("documents.delete_confirm", { n: count })}
      isReady={count > 0 && !counted.isLoading}
      onConfirm={remove}
      onClose={onClose}
    >
      <ErrorMessage error={counted.error} onRetry={counted.reload} />
      {data === undefined && counted.isLoading && <Loading rows={2} />}
      {data && (
        <div class="stack tight">
          {count > 0 && <p>{t("documents.delete_text")}</p>}
          {count === 0 && <p>{t("documents.delete_none")}</p>}
          {expected !== undefined && count > 0 && count < expected && (
            <Notice kind="warning">{t("documents.delete_fewer", { n: expected - count })}</Notice>
          )}
          {!data.isWhole && <Notice kind="warning">{t("documents.delete_part")}</Notice>}
        </div>
      )}
    </Confirm>
  );
}

/** A deletion that goes on, until it has ended. */
function Deletion({ taskId, onDone }: { taskId: string; onDone: () => void }) {
  const [task, setTask] = useState<Task>();
  // An answer may come after an event that is newer.
  const take = (task: Task) => setTask((known) => (known === undefined ? task : newer(known, task)));
  const load = () => void get("/api/v1/documents/tasks/{task_id}", { path: { task_id: taskId } }).then(take, () => {});
  useTaskEvents((task) => task.task_id === taskId && take(task), load);
  useEffect(load, []);
  const hasEnded = task?.status === "done" || task?.status === "failed";
  useEffect(() => {
    if (hasEnded) onDone();
  }, [hasEnded]);
  // Each document has one entry in the layer of documents.
  const deleted = task?.result && "deleted" in task.result ? task.result.deleted.l1 : 0;
  return (
    <Notice kind={task?.status === "failed" ? "warning" : hasEnded ? "ok" : "info"}>
      <div role="status">
        {task && !hasEnded && <TaskProgress task={task} />}
        {task?.status === "failed" && <p>{task.error?.message}</p>}
        {task?.status === "done" && <p>{t("documents.were_deleted", { n: deleted })}</p>}
      </div>
      <a href={taskHref(taskId)}>{t("add.task")}</a>
    </Notice>
  );
}
