// The files that are being added. They go on while the person visits other pages of the console.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, Code, get, post, sessionCount } from "../../api/client";
import { followTasks } from "../../api/task_events";
import type { Task } from "../../api/types";
import { sendFile } from "../../api/upload";
import { t } from "../../i18n";
import { options } from "../../options";
import { errorText } from "../../ui/feedback";
import { check, isGivenUp, isHidden, isLaterThan, signedIn } from "../../session";
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
  /** Whether it is added though it duplicates a document. */
  isForced: boolean;
  /** The idempotency key: what arrived though its answer was lost is not taken twice. */
  key: string;
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
const GATEWAY_TIMEOUT = 504;
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
    sources.set(id, { content, target, isForced: false, key: newKey() });
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
  // What was only stopped may have arrived all the same.
  if (item.skipped !== "stopped") sources.set(item.id, { ...source, isForced, key: newKey() });
  pump();
}

/** A key of 16 random bytes. `randomUUID` is absent where the page came without TLS. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether something can still be stopped. */
export const isSending = computed(() => added.value.some(isUnsent));

const isUnsent = (item: Added) => item.state === "waiting" || (item.state === "sending" && item.sent < 1);

/** Leaves out what is not sent yet. What the server has got goes on. */
export function stop(): void {
  for (const { id } of added.value.filter(isUnsent)) senders.get(id)?.abort();
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

async function send(id: number, source: Source, signal: AbortSignal): Promise<void> {
  const count = sessionCount.peek();
  try {
    const { task_id } = await sendContent(id, source, signal);
    change(id, { state: "working", sent: 1, taskId: task_id });
    heardAt.set(id, Date.now());
    follow();
    const early = unknown.get(task_id);
    if (early) hear(early);
  } catch (cause) {
    if (signal.aborted) return;
    const error = asApiError(cause);
    const tries = (added.value.find((item) => item.id === id)?.tries ?? 0) + (error.isUnreachable ? 1 : 0);
    const wait = tries < MOST_TRIES ? waitAfter(error, count) : undefined;
    if (wait === undefined) {
      change(id, { state: "failed", error });
      return;
    }
    // The file stays in the queue.
    change(id, { tries, sent: 0 });
    const isInVain = (await Promise.race([wait, aborted(signal)])) === false;
    if (!signal.aborted) change(id, isInVain ? { state: "failed", error } : { state: "waiting" });
  }
}

/**
 * What a file waits for that was not taken: the login of a person whose session has ended, the session that began in another tab,
 * the time that the server asks for, or a server that is away. It gives `false` if the file need not be sent again.
 */
function waitAfter(error: ApiError, count: number): Promise<unknown> | undefined {
  if (error.needsSession) return signedIn();
  // The browser may have sent the cookie of another session than that of the page's token.
  if (error.code === Code.forbidden) return isLaterThan(count);
  // A proxy that waited in vain has sent the whole file: the server may be working on it.
  const isAway = error.isUnreachable && error.status !== GATEWAY_TIMEOUT;
  if (error.code !== Code.overloaded && error.code !== Code.rateLimited && !isAway) return undefined;
  return new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(2, error.retryAfter ?? 5)));
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener("abort", resolve));
}

function sendContent(id: number, source: Source, signal: AbortSignal): Promise<{ task_id: string }> {
  const { content } = source;
  if ("text" in content) return sendText(content, source, signal);
  if ("file" in content) return sendUpload(id, content, source, signal);
  throw new Error(`${content.path} cannot be sent`);
}

const headersOf = ({ key }: Source) => ({ "Idempotency-Key": key });

function sendText({ title, text }: { title: string; text: string }, source: Source, signal: AbortSignal) {
  const body = { title, text, space: source.target.space, force: source.isForced };
  return post("/api/v1/documents", { body, headers: headersOf(source), signal });
}

async function sendUpload(id: number, { file, path }: { file: File; path: string }, source: Source, signal: AbortSignal) {
  const { target, isForced } = source;
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
    headers: headersOf(source),
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
  if (isHidden.peek()) return;
  const silent = added.value.filter(
    (item) => item.state === "working" && Date.now() - (heardAt.get(item.id) ?? 0) >= silenceMs,
  );
  for (const item of silent.slice(0, 20)) {
    if (item.taskId === undefined) continue;
    try {
      hear(await get("/api/v1/documents/tasks/{task_id}", { path: { task_id: item.taskId } }));
    } catch (cause) {
      const error = asApiError(cause);
      if (error.code !== Code.notFound) continue;
      // Whoever reads as nobody finds none of the tasks.
      await check();
      if (isHidden.peek()) return;
      change(item.id, { state: "failed", error });
    }
  }
}

// Closing the page would lose what is not sent yet.
window.addEventListener("beforeunload", (event) => {
  const hasUnsent = added.peek().some((item) => item.state === "waiting" || item.state === "sending");
  if (hasUnsent && !isGivenUp) event.preventDefault();
});
