// Data of the server for a component.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, Code, sessionCount } from "./api/client";
import { isHidden } from "./session";

export interface Resource<T> {
  /** The latest data; kept while newer data is loaded. */
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  reload: () => void;
  /** Puts data that a request just returned in place of what was loaded. */
  replace: (data: T) => void;
}

/** How long after a failed connection the next attempt begins. */
const UNREACHABLE_MS = 5000;

/**
 * Loads data, and again when one of `inputs` changes. A load that another one overtakes is aborted.
 */
export function useResource<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload" | "replace">>({
    data: undefined,
    error: undefined,
    isLoading: true,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const controller = new AbortController();
    setState((state) => ({ ...state, isLoading: true }));
    latest.current(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: undefined, isLoading: false });
      },
      (cause: unknown) => {
        if (controller.signal.aborted) return;
        setState((state) => ({ data: state.data, error: asApiError(cause), isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((round) => round + 1), []);
  // A server that was away is asked again until it is back, and one with too much work when it says.
  useEffect(() => {
    const { isUnreachable, code, retryAfter } = state.error ?? {};
    if (!isUnreachable && code !== Code.overloaded) return;
    const timer = setTimeout(reload, Math.max(UNREACHABLE_MS, 1000 * (retryAfter ?? 0)));
    return () => clearTimeout(timer);
  }, [state.error]);
  useEffect(() => {
    if (!isHidden.peek() && state.error?.needsSession) reload();
  }, [sessionCount.value, isHidden.value]);
  const replace = useCallback((data: T) => setState({ data, error: undefined, isLoading: false }), []);
  return { ...state, reload, replace };
}

/** An error as the API tells it. Mistakes of the console itself are told by their message. */
export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  console.error(cause);
  return new ApiError(cause instanceof Error ? cause.message : String(cause), -1, 0, "", null);
}

export interface Action {
  isBusy: boolean;
  error: ApiError | undefined;
  /** Runs the action unless it runs already. */
  run: () => Promise<void>;
  clear: () => void;
}

/** Something that a person starts: whether it is under way, and how it failed. */
export function useAction(action: () => Promise<void>): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const isRunning = useRef(false);
  const latest = useRef(action);
  latest.current = action;
  const run = useCallback(async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    setError(undefined);
    try {
      await latest.current();
    } catch (cause) {
      setError(asApiError(cause));
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  }, []);
  return { isBusy, error, run, clear: useCallback(() => setError(undefined), []) };
}
