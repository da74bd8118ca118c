// Lists of tasks with what is heard of tasks since.
import type { Task } from "../api/types";

/** How many tasks a page of the list has. */
export const PAGE_SIZE = 50;

/** A page of the list with what changed since: newer states, and on the first page newer tasks. */
export function merged(listed: Task[], changed: ReadonlyMap<string, Task>, isFirst: boolean, status: Task["status"] | undefined): Task[] {
  const known = new Set(listed.map(({ task_id }) => task_id));
  const current = listed.map((task) => newer(task, changed.get(task.task_id)));
  // A task that was accepted earlier may get the status later. Earlier ones than the last of a full page belong to the next pages.
  const oldest = listed.length < PAGE_SIZE ? "" : (listed.at(-1)?.created_at ?? "");
  const added = [...changed.values()].filter((task) => isFirst && !known.has(task.task_id) && task.created_at >= oldest);
  const tasks = added.length === 0 ? current : [...current, ...added].sort(newestFirst);
  return tasks.filter((task) => status === undefined || task.status === status).slice(0, 2 * PAGE_SIZE);
}

function newestFirst(a: Task, b: Task): number {
  return a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0;
}

/** How many changed tasks are kept. Those that changed last are: a list shows no more than a part of them. */
const MAX_CHANGED = 500;

/** Adds a change, in place: a copy for each of thousands of events would take the time of all that are kept. */
export function addChange(known: Map<string, Task>, task: Task): void {
  const before = known.get(task.task_id);
  if (before !== undefined && newer(before, task) !== task) return;
  // The map is in the order of the changes.
  known.delete(task.task_id);
  known.set(task.task_id, task);
  if (known.size > MAX_CHANGED) known.delete(known.keys().next().value!);
}

/** Events of a task may come in another order than its changes. */
export function newer(task: Task, change: Task | undefined): Task {
  return change !== undefined && change.updated_at >= task.updated_at ? change : task;
}
