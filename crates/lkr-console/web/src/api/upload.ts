// Uploads with progress, which `fetch` does not tell.
import { type ApiError, csrfHeaders, errorFrom, isOutdated, sessionCount, told } from "./client";

interface Upload {
  method: "POST" | "PUT";
  url: string;
  form: FormData;
  headers?: Record<string, string>;
  signal: AbortSignal;
  /** Called with the share of the bytes that are sent, from 0 to 1. */
  onProgress: (share: number) => void;
}

/** Sends a form with a file. Rejects with an `ApiError`. */
export function sendFile({ method, url, form, headers, signal, onProgress }: Upload): Promise<{ task_id: string }> {
  return new Promise((resolve, reject: (error: ApiError | DOMException) => void) => {
    const request = new XMLHttpRequest();
    const count = sessionCount.peek();
    request.open(method, url);
    request.responseType = "json";
    for (const [name, value] of Object.entries({ ...headers, ...csrfHeaders() })) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.total > 0 && onProgress(event.loaded / event.total));
    request.addEventListener("load", () => {
      const envelope = request.response as { data: { task_id: string } } & Parameters<typeof errorFrom>[1];
      if (request.status >= 200 && request.status < 300 && envelope !== null) return resolve(envelope.data);
      const error = errorFrom(request.status, envelope, request.getResponseHeader("Retry-After"));
      reject(isOutdated(error, count) ? error : told(error));
    });
    request.addEventListener("error", () => reject(told(errorFrom(0, null, null))));
    request.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    if (signal.aborted) reject(new DOMException("aborted", "AbortError"));
    else request.send(form);
  });
}
