// What the console says of its own state: errors, loading, nothing there, and short messages.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type ApiError, Code } from "../api/client";
import { t } from "../i18n";
import { Button, IconButton } from "./controls";
import { Icon, type IconName } from "./icon";

/** An error in the person's words, then the server's. */
export function errorText(error: ApiError): string {
  if (error.isUnreachable) return t("error.unreachable");
  if (error.code === Code.rateLimited && error.retryAfter !== null) {
    return t("error.rate_limited", { n: error.retryAfter });
  }
  return error.message;
}

export function ErrorMessage({ error, onRetry }: { error: ApiError | undefined; onRetry?: (() => void) | undefined }) {
  if (error === undefined) return null;
  return (
    <div class="error-message" role="alert">
      <Icon name="warning" />
      <p>
        {errorText(error)}
        {error.requestId !== "" && <small> {t("error.request", { id: error.requestId })}</small>}
      </p>
      {onRetry && <Button icon="retry" onClick={onRetry}>{t("common.retry")}</Button>}
    </div>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "warning" | "ok"; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`}>
      <Icon name={kind === "warning" ? "warning" : kind === "ok" ? "check" : "pulse"} />
      <div>{children}</div>
    </div>
  );
}

export function Loading({ rows = 3 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">{t("common.loading")}</span>
      {Array.from({ length: rows }, (_, at) => <div key={at} class="loading-row" />)}
    </div>
  );
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}

/** Nothing is there: what that means, and what to do. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={32} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface Toast {
  id: number;
  text: string;
}

const toasts = signal<Toast[]>([]);
const TOAST_MS = 5000;
let lastToast = 0;

/** Says something for a few seconds. */
export function say(text: string): void {
  const toast = { id: ++lastToast, text };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => dismiss(toast.id), TOAST_MS);
}

/** Says that a text was copied, in these words, or that it was not. */
export function sayCopied(isCopied: boolean, copied = t("common.copied")): void {
  say(isCopied ? copied : t("common.not_copied"));
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text }) => (
        <div key={id} class="toast">
          <span>{text}</span>
          <IconButton icon="close" label={t("common.close")} onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
