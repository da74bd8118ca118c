// The files that are being added. They go on while the person visits other pages of the console.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, Code, get, post } from "../../api/client";
import { followTasks } from "../../api/task_events";
import type { Task } from "../../api/types";
import { sendFile } from "../../api/upload";
import { t } from "../../i18n";
import { options } from "../../options";
import { errorText } from "../../ui/feedback";
import { signedIn } from "../../session";
import { asApiError } from "../../use_resource";
import { keepRefused, refusedBefore, type Refused } from "./refused";

export type State = "waiting" | "sending" | "working" | "done" | "duplicate" | "failed" | "skipped";

export interface Added {
  id: number;
  /** The path within the folder, or the file's name. */
  name: string;
  bytes: number;
  state: State;
  /** The share of the bytes that are sent. */
  sent: number;
  taskId?: string;
  task?: Task;
  error?: ApiError;
  skipped?: LeftOut;
  /** How often it could not be sent because the server was away. */
  tries?: number;
}

/** Why a file is not sent. */
export type LeftOut = "format" | "size" | "empty" | "unreadable" | "stopped";

export interface Target {
  space: string;
  /** Replace the document with the same source instead of adding a second one. */
  isReplacing: boolean;
}

/** What is sent: a file, or a text that was typed. A file or folder that the browser could not open is told alone. */
export type Content = { file: File; path: string } | { unreadable: true; path: string } | { title: string; text: string };

interface Source {
  content: Content;
  target: Target;
}

export const added = signal<Added[]>([]);

/** When the oldest of what is under way began, in milliseconds since 1970. */
const startedAt = signal(0);

const sources = new Map<number, Source>();
const UPLOADS_AT_ONCE = 3;
/** A task of which no event came for so long is asked for. */
const SILENCE_MS = 10_000;
const WATCH_MS = 5_000;
/** How often a file is sent to a server that is away before it counts as failed: for a minute. */
const MOST_TRIES = 12;
let lastId = 0;
let sending = 0;
let unfollow: (() => void) | undefined;
let watch = 0;
/** What ends the sending of an item. */
const senders = new Map<number, AbortController>();
const heardAt = new Map<number, number>();

const isUnderWay = (item: Added) => item.state === "waiting" || item.state === "sending" || item.state === "working";

export const progress = computed(() => {
  const items = added.value.filter((item) => item.state !== "skipped");
  const ended = items.filter((item) => !isUnderWay(item));
  return { total: items.length, ended: ended.length, failed: ended.filter((item) => item.state === "failed").length };
});

/**
 * The milliseconds that are left, by the bytes that are done and the time that they took; nothing before a tenth is done,
 * because the first files tell little of the others.
 */
export function timeLeft(now: number): number | undefined {
  const items = added.value.filter((item) => item.state !== "skipped" && item.state !== "failed");
  const total = items.reduce((sum, item) => sum + item.bytes, 0);
  const done = items.reduce((sum, item) => sum + item.bytes * share(item), 0);
  if (total === 0 || done < total / 10 || done >= total) return undefined;
  return ((now - startedAt.value) * (total - done)) / done;
}

/** How far an item is, from 0 to 1: what is sent counts a tenth, embedding nearly all of the rest. */
function share(item: Added): number {
  if (!isUnderWay(item)) return 1;
  const { task } = item;
  if (task?.status !== "running" || task.stage !== "embed" || task.progress.total === 0) return 0.1 * item.sent;
  return 0.1 + (0.85 * task.progress.done) / task.progress.total;
}

/**
 * Adds contents to the queue; what cannot be read here is told and left out. A file that is chosen again takes the place of
 * its earlier row.
 */
export function enqueue(contents: Content[], target: Target): void {
  if (!added.value.some(isUnderWay)) startedAt.value = Date.now();
  forgetEarlier(contents, target);
  const items = contents.map((content) => {
    const id = ++lastId;
    sources.set(id, { content, target });
    return newItem(id, content);
  });
  added.value = [...added.value, ...items];
  pump();
}

function forgetEarlier(contents: Content[], target: Target): void {
  const paths = new Set(contents.map((content) => ("text" in content ? undefined : content.path)));
  const isChosenAgain = (item: Added) => {
    const source = sources.get(item.id);
    return !isUnderWay(item) && source !== undefined && "path" in source.content && paths.has(item.name) && source.target.space === target.space;
  };
  for (const item of added.value.filter(isChosenAgain)) sources.delete(item.id);
  added.value = added.value.filter((item) => isUnderWay(item) || sources.has(item.id));
  refusedBefore.value = refusedBefore.value.filter(({ name, space }) => !(paths.has(name) && space === target.space));
}

function newItem(id: number, content: Content): Added {
  if ("text" in content) {
    return { id, name: content.title, bytes: new Blob([content.text]).size, state: "waiting", sent: 0 };
  }
  const { path } = content;
  const bytes = "file" in content ? content.file.size : 0;
  const skipped = "file" in content ? whyLeftOut(path, bytes) : "unreadable";
  const item: Added = { id, name: path, bytes, state: skipped ? "skipped" : "waiting", sent: 0 };
  return skipped ? { ...item, skipped } : item;
}

/** Why a file of this name and size is not sent; nothing if it is. */
export function whyLeftOut(name: string, bytes: number): LeftOut | undefined {
  const extension = name.split(".").at(-1)?.toLowerCase() ?? "";
  if (!options.upload_extensions.includes(extension)) return "format";
  if (bytes > options.upload_max_bytes) return "size";
  return bytes === 0 ? "empty" : undefined;
}

/** Sends an item again; `isForced` adds it though it duplicates a document. */
export async function again(item: Added, isForced = false): Promise<void> {
  if (!isForced && item.taskId !== undefined && item.task?.error?.retryable) {
    change(item.id, { state: "working", sent: 1 });
    follow();
    try {
      hear(await post("/api/v1/documents/tasks/{task_id}/retry", { path: { task_id: item.taskId } }));
    } catch (cause) {
      change(item.id, { state: "failed", error: asApiError(cause) });
    }
    return;
  }
  const source = sources.get(item.id);
  if (source === undefined) return;
  added.value = added.value.map((other) =>
    other.id === item.id ? { id: item.id, name: item.name, bytes: item.bytes, state: "waiting", sent: 0 } : other,
  );
  if (isForced) forced.add(item.id);
  pump();
}

const forced = new Set<number>();

/** Whether something can still be stopped. */
export const isSending = computed(() => added.value.some(isUnsent));

const isUnsent = (item: Added) => item.state === "waiting" || item.state === "sending";

/** Leaves out what is not sent yet. What the server has got goes on. */
export function stop(): void {
  for (const controller of senders.values()) controller.abort();
  added.value = added.value.map((item) => (isUnsent(item) ? { ...item, state: "skipped", skipped: "stopped", sent: 0 } : item));
}

/** Forgets what has ended. */
export function clearEnded(): void {
  for (const item of added.value) if (!isUnderWay(item)) sources.delete(item.id);
  added.value = added.value.filter(isUnderWay);
}

/** Forgets an item that has ended. */
export function dismiss(id: number): void {
  sources.delete(id);
  added.value = added.value.filter((item) => item.id !== id);
}

// A refused file has no task, so nothing on the server tells of it.
effect(() => {
  const refused = added.value.filter((item) => item.state === "failed" && item.taskId === undefined);
  keepRefused([...refusedBefore.value, ...refused.flatMap(asRefused)]);
});

function asRefused({ id, name, error }: Added): Refused[] {
  const source = sources.get(id);
  if (source === undefined || error === undefined || "text" in source.content) return [];
  return [{ name, reason: errorText(error), ...source.target }];
}

function change(id: number, change: Partial<Added>): void {
  added.value = added.value.map((item) => (item.id === id ? { ...item, ...change } : item));
}

function pump(): void {
  while (sending < UPLOADS_AT_ONCE) {
    const next = added.value.find((item) => item.state === "waiting");
    const source = next && sources.get(next.id);
    if (!next || !source) return;
    sending++;
    change(next.id, { state: "sending" });
    const controller = new AbortController();
    senders.set(next.id, controller);
    void send(next.id, source, controller.signal).finally(() => {
      if (senders.get(next.id) === controller) senders.delete(next.id);
      sending--;
      pump();
    });
  }
}

async function send(id: number, { content, target }: Source, signal: AbortSignal): Promise<void> {
  const isForced = forced.delete(id);
  try {
    const { task_id } = await sendContent(id, content, target, isForced, signal);
    change(id, { state: "working", sent: 1, taskId: task_id });
    heardAt.set(id, Date.now());
    follow();
    const early = unknown.get(task_id);
    if (early) hear(early);
  } catch (cause) {
    if (signal.aborted) return;
    const error = asApiError(cause);
    const tries = (added.value.find((item) => item.id === id)?.tries ?? 0) + (error.isUnreachable ? 1 : 0);
    const wait = tries < MOST_TRIES ? waitAfter(error) : undefined;
    if (wait === undefined) {
      change(id, { state: "failed", error });
      return;
    }
    change(id, { tries });
    // The file stays in the queue.
    if (isForced) forced.add(id);
    await Promise.race([wait, aborted(signal)]);
    if (!signal.aborted) change(id, { state: "waiting", sent: 0 });
  }
}

/**
 * What a file waits for that was not taken: the login of a person whose session has ended, the time that the server asks for, or
 * a server that is away.
 */
function waitAfter(error: ApiError): Promise<unknown> | undefined {
  if (error.code === Code.unauthenticated) return signedIn();
  if (error.code !== Code.overloaded && error.code !== Code.rateLimited && !error.isUnreachable) return undefined;
  return new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(2, error.retryAfter ?? 5)));
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener("abort", resolve));
}

function sendContent(id: number, content: Content, target: Target, isForced: boolean, signal: AbortSignal): Promise<{ task_id: string }> {
  if ("text" in content) return sendText(content, target, isForced, signal);
  if ("file" in content) return sendUpload(id, content, target, isForced, signal);
  throw new Error(`${content.path} cannot be sent`);
}

function sendText(content: { title: string; text: string }, target: Target, force: boolean, signal: AbortSignal) {
  const { title, text } = content;
  return post("/api/v1/documents", { body: { title, text, space: target.space, force }, signal });
}

async function sendUpload(id: number, { file, path }: { file: File; path: string }, target: Target, isForced: boolean, signal: AbortSignal) {
  await checkReadable(file);
  const form = new FormData();
  form.set("space", target.space);
  form.set("source", `file:${path}`);
  if (target.isReplacing) form.set("upsert", "true");
  if (isForced) form.set("force", "true");
  form.set("file", file, file.name);
  return sendFile({
    method: "POST",
    url: "/api/v1/documents/upload",
    form,
    signal,
    onProgress: (sent) => change(id, { sent }),
  });
}

/** A file that was changed or removed since it was chosen can be chosen again only: the browser gives it no more. */
export async function checkReadable(file: File): Promise<void> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new ApiError(t("add.changed"), -1, 0, "", null);
  }
}

/** Tasks that changed before the answer told whose they are. */
const unknown = new Map<string, Task>();
const MOST_UNKNOWN = 200;

function hear(task: Task): void {
  const item = added.value.find((item) => item.taskId === task.task_id);
  if (item === undefined) {
    unknown.delete(task.task_id);
    unknown.set(task.task_id, task);
    const [oldest] = unknown.keys();
    if (unknown.size > MOST_UNKNOWN && oldest !== undefined) unknown.delete(oldest);
    return;
  }
  heardAt.set(item.id, Date.now());
  // Events of a task may come in another order than its changes.
  if (item.task !== undefined && task.updated_at < item.task.updated_at) return;
  change(item.id, { task, state: stateOf(task) });
  if (!added.value.some(isUnderWay)) rest();
}

function stateOf(task: Task): State {
  if (task.status === "failed") return "failed";
  if (task.status !== "done") return "working";
  const result = task.result as { duplicate_of?: unknown } | undefined;
  return result?.duplicate_of ? "duplicate" : "done";
}

function follow(): void {
  unfollow ??= followTasks({ onTask: hear, onReturn: () => void ask(0) });
  watch ||= window.setInterval(() => void ask(SILENCE_MS), WATCH_MS);
}

function rest(): void {
  unfollow?.();
  unfollow = undefined;
  clearInterval(watch);
  watch = 0;
  unknown.clear();
}

/** Asks for the tasks that were silent for so long. */
async function ask(silenceMs: number): Promise<void> {
  const silent = added.value.filter(
    (item) => item.state === "working" && Date.now() - (heardAt.get(item.id) ?? 0) >= silenceMs,
  );
  for (const item of silent.slice(0, 20)) {
    if (item.taskId === undefined) continue;
    try {
      hear(await get("/api/v1/documents/tasks/{task_id}", { path: { task_id: item.taskId } }));
    } catch (cause) {
      const error = asApiError(cause);
      if (error.code === Code.notFound) change(item.id, { state: "failed", error });
    }
  }
}

// Closing the page would lose what is not sent yet.
window.addEventListener("beforeunload", (event) => {
  if (added.peek().some((item) => item.state === "waiting" || item.state === "sending")) event.preventDefault();
});
