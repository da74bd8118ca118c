// What an admin can do with an account.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { del, patch, post } from "../../api/client";
import type { User } from "../../api/types";
import { t, tData } from "../../i18n";
import { user } from "../../session";
import { Button } from "../../ui/controls";
import { Fact, Facts, Time } from "../../ui/data";
import { Confirm, Dialog } from "../../ui/dialog";
import { Notice, say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { PasswordField, UserState } from "./users";

interface ManageProps {
  account: User;
  /** The account was changed. */
  onChange: (account: User) => void;
  /** The list is no longer what it was. */
  onDone: () => void;
  onClose: () => void;
}

type Question = "role" | "disabled" | "password" | "delete";

export function ManageUser({ account, onChange, onDone, onClose }: ManageProps) {
  const [question, setQuestion] = useState<Question>();
  const close = () => setQuestion(undefined);
  const changed = (account: User) => {
    say(t("common.saved"));
    onChange(account);
    onDone();
  };
  const deleted = () => {
    onDone();
    onClose();
  };
  return (
    <Dialog title={account.username} shape="drawer" onClose={onClose}>
      <div class="stack">
        <Facts>
          <Fact name={t("account.role")}>{tData("role", account.role)}</Fact>
          <Fact name={t("users.state")}><UserState user={account} /></Fact>
          <Fact name={t("common.created")}><Time at={account.created_at} /></Fact>
        </Facts>
        <Deeds account={account} ask={setQuestion} />
        {question === "role" && <ChangeRole account={account} onDone={changed} onClose={close} />}
        {question === "disabled" && <ChangeDisabled account={account} onDone={changed} onClose={close} />}
        {question === "password" && <ResetPassword account={account} onDone={changed} onClose={close} />}
        {question === "delete" && <DeleteUser account={account} onDone={deleted} onClose={close} />}
      </div>
    </Dialog>
  );
}

function Deeds({ account, ask }: { account: User; ask: (question: Question) => void }) {
  if (account.username === user.value?.username) return <Notice>{t("users.own")}</Notice>;
  const isAdmin = account.role === "admin";
  return (
    <ul class="deeds">
      <Deed title={t(isAdmin ? "users.make_user" : "users.make_admin")} hint={t("users.role_hint")}>
        <Button onClick={() => ask("role")}>{t(isAdmin ? "users.make_user" : "users.make_admin")}</Button>
      </Deed>
      <Deed title={t("users.reset")} hint={t("users.reset_hint")}>
        <Button onClick={() => ask("password")}>{t("users.reset")}</Button>
      </Deed>
      <Deed title={t(account.disabled ? "users.enable" : "users.disable")} hint={t("users.disable_hint")}>
        <Button onClick={() => ask("disabled")}>{t(account.disabled ? "users.enable" : "users.disable")}</Button>
      </Deed>
      <Deed title={t("users.delete")} hint={t("users.delete_hint")}>
        <Button variant="danger" onClick={() => ask("delete")}>{t("common.delete")}</Button>
      </Deed>
    </ul>
  );
}

function Deed({ title, hint, children }: { title: string; hint: string; children: ComponentChildren }) {
  return (
    <li>
      <div>
        <h3>{title}</h3>
        <p class="hint">{hint}</p>
      </div>
      {children}
    </li>
  );
}

interface DeedProps {
  account: User;
  onDone: (account: User) => void;
  onClose: () => void;
}

function ChangeRole({ account, onDone, onClose }: DeedProps) {
  const role = account.role === "admin" ? "user" : "admin";
  const title = t(role === "admin" ? "users.make_admin" : "users.make_user");
  const change = async () =>
    onDone(await patch("/api/v1/users/{username}", { path: { username: account.username }, body: { role } }));
  return (
    <Confirm title={title} confirm={title} onConfirm={change} onClose={onClose}>
      <p>{t(role === "admin" ? "users.make_admin_text" : "users.make_user_text", { name: account.username })}</p>
    </Confirm>
  );
}

function ChangeDisabled({ account, onDone, onClose }: DeedProps) {
  const disabled = !account.disabled;
  const title = t(disabled ? "users.disable" : "users.enable");
  const change = async () =>
    onDone(await patch("/api/v1/users/{username}", { path: { username: account.username }, body: { disabled } }));
  return (
    <Confirm title={title} confirm={title} onConfirm={change} onClose={onClose}>
      <p>{t(disabled ? "users.disable_text" : "users.enable_text", { name: account.username })}</p>
    </Confirm>
  );
}

function ResetPassword({ account, onDone, onClose }: DeedProps) {
  const [password, setPassword] = useState("");
  const { username } = account;
  const reset = async () =>
    onDone(await post("/api/v1/users/{username}/password", { path: { username }, body: { new_password: password } }));
  return (
    <FormDialog title={t("users.reset")} submit={t("users.reset")} onSubmit={reset} onClose={onClose}>
      <p>{t("users.reset_text", { name: username })}</p>
      <PasswordField value={password} onInput={setPassword} />
    </FormDialog>
  );
}

function DeleteUser({ account, onDone, onClose }: Omit<DeedProps, "onDone"> & { onDone: () => void }) {
  const { username } = account;
  const remove = async () => {
    await del("/api/v1/users/{username}", { path: { username } });
    say(t("users.deleted", { name: username }));
    onDone();
  };
  return (
    <Confirm title={t("users.delete")} confirm={t("users.delete")} onConfirm={remove} onClose={onClose}>
      <p>{t("users.delete_text", { name: username })}</p>
    </Confirm>
  );
}
