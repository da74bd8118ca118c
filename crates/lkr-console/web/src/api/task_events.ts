// The server's stream of task events: one for the page, while something on it follows tasks and the page is seen.
import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { check, isHidden, session } from "../session";
import type { Task } from "./types";

export type Connection = "idle" | "live" | "lost";

/** The state of the stream. */
export const connection = signal<Connection>("idle");

interface Follower {
  onTask: (task: Task) => void;
  /** Events may have been missed. */
  onReturn: () => void;
}

const followers = new Set<Follower>();
const listeners = new Set<(task: Task) => void>();
let source: EventSource | null = null;
let wasLost = false;

/** How long a stream that the server refused stays closed before the next attempt. */
const RETRY_MS = 5000;

/** Follows the tasks that the caller may read, until the returned function is called. */
export function followTasks(follower: Follower): () => void {
  followers.add(follower);
  connect();
  return () => {
    followers.delete(follower);
    if (followers.size === 0) disconnect();
  };
}

/** Calls `listener` with what the stream brings while something follows it. It does not open the stream. */
export function hearTasks(listener: (task: Task) => void): void {
  listeners.add(listener);
}

/** Calls `onTask` with every change of a task, and `onReturn` after events may have been missed. */
export function useTaskEvents(onTask: (task: Task) => void, onReturn: () => void): void {
  const latest = useRef({ onTask, onReturn });
  latest.current = { onTask, onReturn };
  useEffect(
    () => followTasks({ onTask: (task) => latest.current.onTask(task), onReturn: () => latest.current.onReturn() }),
    [],
  );
}

function connect(): void {
  if (source !== null || followers.size === 0 || document.visibilityState === "hidden" || isHidden.peek()) return;
  const stream = new EventSource("/api/v1/documents/tasks/events");
  source = stream;
  stream.addEventListener("open", () => {
    connection.value = "live";
    if (wasLost) void catchUp();
  });
  stream.addEventListener("task", (event) => {
    const task = JSON.parse((event as MessageEvent<string>).data) as Task;
    for (const follower of followers) follower.onTask(task);
    for (const listener of listeners) listener(task);
  });
  stream.addEventListener("error", () => {
    wasLost = true;
    connection.value = "lost";
    // The browser reconnects by itself unless the server refused the stream.
    if (stream.readyState === EventSource.CLOSED) {
      source = null;
      void check().then(() => setTimeout(connect, RETRY_MS));
    }
  });
}

/** Has what was missed asked for, if the session goes on: a browser drops its cookie at the end, and reads as nobody then. */
async function catchUp(): Promise<void> {
  wasLost = false;
  await check();
  // Otherwise the stream is given up until the next session.
  if (!isHidden.peek()) for (const follower of followers) follower.onReturn();
}

/** Closes the stream until `connect`: what it would have brought is missed. */
function pause(): void {
  wasLost ||= source !== null;
  disconnect();
}

function disconnect(): void {
  source?.close();
  source = null;
  connection.value = "idle";
}

// A page that waits for a login has no stream: the browser would open it again as nobody's.
effect(() => {
  if (isHidden.value) pause();
  else if (session.value.state === "user") connect();
});

// A hidden page gives its connection back: a browser allows few to one server.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") pause();
  else connect();
});
