// What every page names: the spaces and the categories. They are loaded once for all pages, and again when they may have
// changed.
import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { listAll } from "./api/all";
import { get, sessionCount, type ApiError } from "./api/client";
import { hearTasks } from "./api/task_events";
import type { Category, Space } from "./api/types";
import { isHidden, user } from "./session";
import { asApiError } from "./use_resource";

export interface Known<T> {
  /** The latest data; kept while newer data is loaded. */
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
}

export interface Shared<T> {
  state: ReadonlySignal<Known<T>>;
  /** Loads it, unless it is loaded or being loaded. */
  need: () => void;
  /** Loads it again, if anything needs it. */
  renew: () => void;
  /** Loads it again. */
  reload: () => void;
  /** Forgets it. */
  clear: () => void;
}

/** Data that all pages share. What an earlier round of loading gives is ignored. */
export function shared<T>(load: () => Promise<T>): Shared<T> {
  const none: Known<T> = { data: undefined, error: undefined, isLoading: false };
  const state = signal(none);
  let round = 0;
  const reload = () => {
    const mine = ++round;
    state.value = { ...state.peek(), isLoading: true };
    load().then(
      (data) => {
        if (mine === round) state.value = { data, error: undefined, isLoading: false };
      },
      (cause: unknown) => {
        if (mine === round) state.value = { data: state.peek().data, error: asApiError(cause), isLoading: false };
      },
    );
  };
  const isNeeded = () => state.peek().data !== undefined || state.peek().isLoading;
  return {
    state,
    reload,
    need: () => {
      if (!isNeeded() && state.peek().error === undefined) reload();
    },
    renew: () => {
      if (isNeeded()) reload();
    },
    clear: () => {
      round++;
      state.value = none;
    },
  };
}

export const knownSpaces = shared<Space[]>(() => loadSpaces());
export const knownCategories = shared<Category[]>(async () => (await get("/api/v1/knowledge/categories")).categories);

/** All spaces that the person may read. */
export function loadSpaces(signal?: AbortSignal): Promise<Space[]> {
  return listAll((query) => get("/api/v1/spaces", { query, ...(signal && { signal }) }));
}

/** The titles of spaces that have one, by their names. */
export const spaceTitles = computed(() => {
  const titled = (knownSpaces.state.value.data ?? []).filter(({ title }) => title !== "");
  return new Map(titled.map(({ space, title }) => [space, title]));
});

/** A space, if it is known. */
export function spaceOf(name: string): Space | undefined {
  return knownSpaces.state.value.data?.find(({ space }) => space === name);
}

/** Data for a choice: what is known of it at once, and anew for each page that offers the choice. */
export function useShared<T>(what: Shared<T>): Known<T> & { reload: () => void } {
  useEffect(() => {
    if (!what.state.peek().isLoading) what.reload();
  }, []);
  return { ...what.state.value, reload: what.reload };
}

// Another account may read other spaces.
let reader: string | undefined;
effect(() => {
  const username = user.value?.username;
  if (username === reader) return;
  reader = username;
  const wasNeeded = knownSpaces.state.peek().data !== undefined || knownSpaces.state.peek().isLoading;
  knownSpaces.clear();
  if (wasNeeded) knownSpaces.reload();
});

// What the session was refused may be read with the next one.
effect(() => {
  void sessionCount.value;
  if (isHidden.value) return;
  for (const known of [knownSpaces, knownCategories]) if (known.state.peek().error?.needsSession) known.reload();
});

hearTasks((task) => {
  if (task.kind === "delete_space" && task.status === "done") knownSpaces.renew();
});
