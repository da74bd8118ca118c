// Uploads with progress, which `fetch` does not tell.
import { type ApiError, csrfHeaders, errorFrom, told } from "./client";

interface Upload {
  method: "POST" | "PUT";
  url: string;
  form: FormData;
  signal: AbortSignal;
  /** Called with the share of the bytes that are sent, from 0 to 1. */
  onProgress: (share: number) => void;
}

/** Sends a form with a file. Rejects with an `ApiError`. */
export function sendFile({ method, url, form, signal, onProgress }: Upload): Promise<{ task_id: string }> {
  return new Promise((resolve, reject: (error: ApiError | DOMException) => void) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = "json";
    for (const [name, value] of Object.entries(csrfHeaders())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.total > 0 && onProgress(event.loaded / event.total));
    request.addEventListener("load", () => {
      const envelope = request.response as { data: { task_id: string } } & Parameters<typeof errorFrom>[1];
      if (request.status >= 200 && request.status < 300 && envelope !== null) resolve(envelope.data);
      else reject(told(errorFrom(request.status, envelope, request.getResponseHeader("Retry-After"))));
    });
    request.addEventListener("error", () => reject(told(errorFrom(0, null, null))));
    request.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    if (signal.aborted) reject(new DOMException("aborted", "AbortError"));
    else request.send(form);
  });
}
