// The server's stream of task events: one for the page, while something on it follows tasks and the page is seen.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Task } from "./types";

export type Connection = "idle" | "live" | "lost";

/** The state of the stream. */
export const connection = signal<Connection>("idle");

type Listener = (task: Task) => void;

const listeners = new Set<Listener>();
const returns = new Set<() => void>();
let source: EventSource | null = null;
let wasLost = false;

/** How long a stream that the server ended stays closed before the next attempt. */
const RETRY_MS = 3000;

/** Calls `onTask` with every change of a task that the caller may read, and `onReturn` after events may have been missed. */
export function useTaskEvents(onTask: Listener, onReturn: () => void): void {
  const latest = useRef({ onTask, onReturn });
  latest.current = { onTask, onReturn };
  useEffect(() => {
    const listener: Listener = (task) => latest.current.onTask(task);
    const returned = () => latest.current.onReturn();
    listeners.add(listener);
    returns.add(returned);
    connect();
    return () => {
      listeners.delete(listener);
      returns.delete(returned);
      if (listeners.size === 0) disconnect();
    };
  }, []);
}

function connect(): void {
  if (source !== null || listeners.size === 0 || document.visibilityState === "hidden") return;
  const stream = new EventSource("/api/v1/documents/tasks/events");
  source = stream;
  stream.addEventListener("open", () => {
    connection.value = "live";
    if (wasLost) for (const returned of returns) returned();
    wasLost = false;
  });
  stream.addEventListener("task", (event) => {
    const task = JSON.parse((event as MessageEvent<string>).data) as Task;
    for (const listener of listeners) listener(task);
  });
  stream.addEventListener("error", () => {
    wasLost = true;
    connection.value = "lost";
    // The browser reconnects by itself unless the server refused the stream.
    if (stream.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, RETRY_MS);
    }
  });
}

function disconnect(): void {
  source?.close();
  source = null;
  connection.value = "idle";
}

// A hidden page gives its connection back: a browser allows few to one server.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") {
    if (source !== null) wasLost = true;
    disconnect();
  } else {
    connect();
  }
});
