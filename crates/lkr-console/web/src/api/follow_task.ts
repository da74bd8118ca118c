// Tasks that a page follows.
import { useState } from "preact/hooks";
import { useResource, type Resource } from "../use_resource";
import { get } from "./client";
import { useTaskEvents } from "./task_events";
import type { Task } from "./types";

/** The newest task of a kind as it is now: one that an earlier page started, too. */
export function useLatestTask(kind: Task["kind"]): Resource<Task | undefined> & { follow: () => void } {
  const [seen, setSeen] = useState<Task>();
  const resource = useResource((signal) => loadLatest(kind, signal), [kind]);
  useTaskEvents((task) => task.kind === kind && setSeen((seen) => newer(seen, task)), resource.reload);
  return { ...resource, data: newer(resource.data, seen), follow: resource.reload };
}

export function isUnfinished(task: Task | undefined): boolean {
  return task?.status === "pending" || task?.status === "running";
}

async function loadLatest(kind: Task["kind"], signal: AbortSignal): Promise<Task | undefined> {
  const load = (status?: "pending" | "running") =>
    get("/api/v1/documents/tasks", { query: { limit: 100, ...(status && { status }) }, signal });
  // An unfinished task may be older than the newest hundred.
  const pages = await Promise.all([load("running"), load("pending"), load()]);
  const found = pages.flatMap((page) => page.items).filter((task) => task.kind === kind);
  return found.reduce<Task | undefined>(newer, undefined);
}

/** The task that was created later, or the later state of one task. */
function newer(known: Task | undefined, task: Task | undefined): Task | undefined {
  if (known === undefined || task === undefined) return known ?? task;
  if (known.task_id !== task.task_id) return known.created_at > task.created_at ? known : task;
  return known.updated_at > task.updated_at ? known : task;
}
