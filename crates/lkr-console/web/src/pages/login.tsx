// Signing in, and the change of a password that somebody else has set.
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, Code } from "../api/client";
import { t } from "../i18n";
import { options } from "../options";
import { changePassword, login, logout, register, resume, session, user } from "../session";
import { Button, FormButtons, TextField, submitting } from "../ui/controls";
import { ErrorMessage, Notice, say } from "../ui/feedback";
import { Preferences } from "../ui/shell";
import { useAction } from "../use_resource";

interface LoginProps {
  /** Why a login is asked for; absent if the person came to log in. */
  reason?: "ended" | "needed" | "page";
}

export function LoginPage({ reason }: LoginProps) {
  const [isNew, setNew] = useState(false);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const { path, route } = useLocation();
  const form = useRef<HTMLFormElement>(null);
  const action = useAction(async () => {
    await (isNew ? register(username, password) : login(username, password));
    if (path === "/login") route("/", true);
  });
  useEffect(() => form.current?.querySelector("input")?.focus(), [isNew]);
  useEffect(() => {
    if (session.value.state === "user" && path === "/login") route("/", true);
  }, []);
  const title = t(isNew ? "register.title" : "login.title");
  useTitle(title);
  const isWrong = action.error?.code === Code.unauthenticated;
  return (
    <Entrance title={title} hasMain={reason === "ended" || reason === "needed"}>
      {reason === "ended" && <Notice>{t("login.ended")}</Notice>}
      {reason === "needed" && <Notice>{t("login.needed")}</Notice>}
      {reason === "page" && <Notice>{t("forbidden.anonymous")}</Notice>}
      <form
        ref={form}
        class="stack"
        onSubmit={submitting(() => void action.run())}
      >
        <TextField
          label={t("login.username")}
          value={username}
          onInput={setUsername}
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          required
          hint={isNew && t("register.username_hint")}
        />
        <TextField
          label={t("login.password")}
          type="password"
          value={password}
          onInput={setPassword}
          autocomplete={isNew ? "new-password" : "current-password"}
          required
          hint={isNew && t("password.hint")}
        />
        {isWrong ? <div class="error-message" role="alert"><p>{t("login.wrong")}</p></div> : <ErrorMessage error={action.error} />}
        <FormButtons>
          {options.register && (
            <Button variant="quiet" onClick={() => setNew(!isNew)}>{t(isNew ? "login.instead" : "login.register")}</Button>
          )}
          <Button variant="primary" type="submit" isBusy={action.isBusy}>{t(isNew ? "register.submit" : "login.submit")}</Button>
        </FormButtons>
        {!isNew && <p class="hint">{t("login.first")}</p>}
      </form>
    </Entrance>
  );
}

/** How long after an attempt that failed the server is asked again who is signed in. */
const RETRY_MS = 5000;

/** Nobody knows yet who is signed in: the server is asked again until it answers. */
export function UnreachablePage({ error }: { error: ApiError }) {
  const again = useAction(resume);
  useEffect(() => {
    const timer = setTimeout(() => void again.run(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [error]);
  useEffect(() => void (document.title = "lkr"), []);
  return (
    <Entrance title="lkr" hasMain>
      <ErrorMessage error={error} onRetry={() => void again.run()} />
    </Entrance>
  );
}

/** The change of a password that was given to the account: nothing else is possible before. */
export function ForcedPasswordPage() {
  const leave = useAction(logout);
  useTitle(t("password.title"));
  return (
    <Entrance title={t("password.title")} hasMain>
      <p>{t("password.forced")}</p>
      <PasswordForm onDone={() => say(t("password.changed"))} />
      <ErrorMessage error={leave.error} />
      <Button variant="quiet" isBusy={leave.isBusy} onClick={() => void leave.run()}>{t("shell.sign_out")}</Button>
    </Entrance>
  );
}

/** Has the page named so while it is shown, and as before afterwards. */
function useTitle(title: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = `${title} · lkr`;
    return () => void (document.title = before);
  }, [title]);
}

export function PasswordForm({ onDone }: { onDone: () => void }) {
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const [fault, setFault] = useState<"short" | "mismatch">();
  const action = useAction(async () => {
    await changePassword(current, next);
    setCurrent("");
    setNext("");
    setAgain("");
    onDone();
  });
  const isWrong = action.error?.code === Code.unauthenticated;
  const submit = () => {
    const fault = [...next].length < 8 ? "short" : next !== again ? "mismatch" : undefined;
    setFault(fault);
    if (fault === undefined) void action.run();
  };
  return (
    <form
      class="stack"
      onSubmit={submitting(submit)}
    >
      <input type="text" autocomplete="username" value={user.value?.username ?? ""} hidden readOnly />
      <TextField
        label={t("password.current")}
        type="password"
        autocomplete="current-password"
        required
        value={current}
        onInput={setCurrent}
        error={isWrong ? t("password.wrong") : undefined}
      />
      <TextField
        label={t("password.new")}
        type="password"
        autocomplete="new-password"
        required
        value={next}
        onInput={setNext}
        hint={t("password.hint")}
        error={fault === "short" ? t("password.short") : undefined}
      />
      <TextField
        label={t("password.repeat")}
        type="password"
        autocomplete="new-password"
        required
        value={again}
        onInput={setAgain}
        error={fault === "mismatch" ? t("password.mismatch") : undefined}
      />
      {!isWrong && <ErrorMessage error={action.error} />}
      <FormButtons>
        <Button variant="primary" type="submit" isBusy={action.isBusy}>{t("password.submit")}</Button>
      </FormButtons>
    </form>
  );
}

interface EntranceProps {
  title: string;
  /** Whether the page stands alone, without the navigation around it. */
  hasMain: boolean;
  children: preact.ComponentChildren;
}

function Entrance({ title, hasMain, children }: EntranceProps) {
  const Frame = hasMain ? "main" : "div";
  return (
    <Frame class={hasMain ? "entrance alone" : "entrance"}>
      <div class="card stack">
        {hasMain && <img src="/console/icon.svg" alt="" width={36} height={36} />}
        <h1 tabIndex={-1}>{title}</h1>
        {children}
        {hasMain && <Preferences />}
      </div>
    </Frame>
  );
}
