// How far a task is.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Task } from "../api/types";
import { t, tData } from "../i18n";
import { duration } from "../i18n/format";
import { Badge, Progress, type BadgeKind } from "../ui/data";

const KINDS: Record<Task["status"], BadgeKind> = { pending: "neutral", running: "accent", done: "ok", failed: "danger" };

export function TaskStatus({ task }: { task: Task }) {
  return <Badge kind={KINDS[task.status]}>{tData("task.status", task.status)}</Badge>;
}

/** The stage, how far it is, and how long it will still take by its own speed. */
export function TaskProgress({ task }: { task: Task }) {
  const left = useTimeLeft(task);
  if (task.status === "pending") return <p class="muted">{t("task.waiting")}</p>;
  const stage = tData("task.stage", task.stage);
  return (
    <div class="task-progress">
      <span>{stage}</span>
      <Progress label={stage} done={task.progress.done} total={task.progress.total} />
      {left !== undefined && <span class="muted">{t("add.time_left", { time: duration(left) })}</span>}
    </div>
  );
}

/** The milliseconds left in a stage: from what was done since it was first seen, and the time that took. */
function useTimeLeft(task: Task): number | undefined {
  const first = useRef({ stage: "", done: 0, at: 0 });
  const [left, setLeft] = useState<number>();
  const { stage, progress: { done, total } } = task;
  useEffect(() => {
    if (first.current.stage !== stage) {
      first.current = { stage, done, at: Date.now() };
      setLeft(undefined);
      return;
    }
    const { at, done: before } = first.current;
    const gained = done - before;
    if (gained <= 0 || total === 0 || gained < total / 20) return;
    setLeft(done >= total ? undefined : ((Date.now() - at) * (total - done)) / gained);
  }, [stage, done, total]);
  return left;
}
