// Requests to the server's API, typed by its OpenAPI document. The session is a cookie that scripts cannot read; what
// changes something also sends the CSRF token, which lives in memory only.
import { signal } from "@preact/signals";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that know a method. */
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never;
}[keyof paths];

type Operation<P extends keyof paths, M extends Method> = paths[P] extends { [K in M]: infer O } ? O : never;

/** What a request of this operation needs. */
type Input<O> = (O extends { parameters: { path: infer Path } } ? { path: Path } : { path?: never }) &
  (O extends { parameters: { query?: infer Query } } ? { query?: Query } : unknown) &
  (O extends { requestBody: { content: { "application/json": infer Body } } }
    ? { body: Body }
    : O extends { requestBody?: { content: { "application/json": infer Body } } }
      ? { body?: Body }
      : unknown) & Common;

interface Common {
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** The code of a refusal that the caller tells itself. */
  expected?: number;
}

type Json<R> = R extends { content: { "application/json": { data: infer Data } } } ? Data : never;

/** The data of a successful response. */
export type Data<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R]: S extends 200 | 201 | 202 ? Json<R[S]> : never }[keyof R]
    : never;

/** What a proxy answers in place of a server that is away, such as one that is being started anew. */
const GATEWAY_STATUSES = [502, 503, 504];

/** A refusal by the server, or a connection that failed (`status` 0). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: number,
    readonly requestId: string,
    /** Seconds after which a repetition may succeed. */
    readonly retryAfter: number | null,
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** Whether the server did not answer: the connection failed, or a proxy before it says that it is away. */
  get isUnreachable(): boolean {
    return this.status === 0 || (this.code === 0 && GATEWAY_STATUSES.includes(this.status));
  }

  /** Whether the next session may be given what this one was refused. */
  get needsSession(): boolean {
    return this.code === Code.unauthenticated || this.code === Code.passwordChangeRequired;
  }
}

/** The codes of errors that the console tells apart. */
export const Code = {
  invalid: 1001,
  conflict: 1003,
  notFound: 1004,
  unauthenticated: 1005,
  forbidden: 1006,
  registerDisabled: 1007,
  passwordChangeRequired: 1008,
  rateLimited: 1009,
  overloaded: 1010,
} as const;

let csrfToken: string | null = null;
let onError: (error: ApiError) => void = () => {};

/** How many sessions the page has had: what was refused without one may be read with the next. */
export const sessionCount = signal(0);

export function setCsrfToken(token: string | null): void {
  const isNew = token !== null && token !== csrfToken;
  csrfToken = token;
  if (isNew) sessionCount.value++;
}

/** The headers that a request which changes something needs. */
export function csrfHeaders(): Record<string, string> {
  return csrfToken === null ? {} : { "X-Lkr-CSRF": csrfToken };
}

/** Calls `listener` with every error, so that the session notices its end. */
export function listenToErrors(listener: (error: ApiError) => void): void {
  onError = listener;
}

export function get<P extends PathsWith<"get">>(path: P, input?: Input<Operation<P, "get">>) {
  return request("get", path, input) as Promise<Data<P, "get">>;
}

export function post<P extends PathsWith<"post">>(path: P, input?: Input<Operation<P, "post">>) {
  return request("post", path, input) as Promise<Data<P, "post">>;
}

export function put<P extends PathsWith<"put">>(path: P, input?: Input<Operation<P, "put">>) {
  return request("put", path, input) as Promise<Data<P, "put">>;
}

export function patch<P extends PathsWith<"patch">>(path: P, input?: Input<Operation<P, "patch">>) {
  return request("patch", path, input) as Promise<Data<P, "patch">>;
}

export function del<P extends PathsWith<"delete">>(path: P, input?: Input<Operation<P, "delete">>) {
  return request("delete", path, input) as Promise<Data<P, "delete">>;
}

interface AnyInput extends Common {
  path?: Record<string, unknown> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

async function request(method: Method, path: string, input: unknown): Promise<unknown> {
  const response = await send(method, path, (input ?? {}) as AnyInput);
  const envelope = await readEnvelope(response);
  return envelope.data;
}

/** A response whose status is a success. Throws an `ApiError` otherwise. */
export async function send(method: Method, path: string, input: AnyInput): Promise<Response> {
  const count = sessionCount.peek();
  const headers: Record<string, string> = { ...input.headers };
  if (method !== "get") Object.assign(headers, csrfHeaders());
  if (input.body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(urlOf(path, input), {
      method: method.toUpperCase(),
      headers,
      credentials: "same-origin",
      body: input.body === undefined ? null : JSON.stringify(input.body),
      signal: input.signal ?? null,
    });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw told(new ApiError("", 0, 0, "", null));
  }
  if (!response.ok) {
    const error = await errorOf(response);
    if (error.code === input.expected) throw error;
    // What came too late for one session belongs to the next one, which has not ended.
    if (isOutdated(error, count)) return send(method, path, input);
    throw told(error);
  }
  return response;
}

/** The URL of a path with its parameters. */
export function urlOf(path: string, input: { path?: AnyInput["path"]; query?: AnyInput["query"] } = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input.path?.[name] ?? "")));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

interface Envelope {
  code: number;
  message: string;
  request_id: string;
  data: unknown;
}

async function readEnvelope(response: Response): Promise<Envelope> {
  try {
    return (await response.json()) as Envelope;
  } catch {
    throw told(new ApiError("", 0, 0, "", null));
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const envelope = (await response.json().catch(() => null)) as Envelope | null;
  return errorFrom(response.status, envelope, response.headers.get("Retry-After"));
}

/** The error of an envelope. */
export function errorFrom(status: number, envelope: Envelope | null, retryAfter: string | null): ApiError {
  const seconds = Number(retryAfter ?? NaN);
  return new ApiError(
    envelope?.message ?? `HTTP ${status}`,
    status,
    envelope?.code ?? 0,
    envelope?.request_id ?? "",
    Number.isFinite(seconds) ? seconds : null,
  );
}

/** Whether an error tells of the end of a session after which another one has begun since. */
export function isOutdated(error: ApiError, count: number): boolean {
  return error.code === Code.unauthenticated && sessionCount.peek() !== count;
}

/** The error, of which the listener is told. */
export function told(error: ApiError): ApiError {
  onError(error);
  return error;
}
