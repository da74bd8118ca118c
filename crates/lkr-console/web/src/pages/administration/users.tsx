// The accounts of the service.
import { useState } from "preact/hooks";
import { get, post } from "../../api/client";
import type { User } from "../../api/types";
import { t, tData } from "../../i18n";
import { Button, Checkbox, IconButton, Select, TextField } from "../../ui/controls";
import { Badge, Foreign, Time } from "../../ui/data";
import { say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { actionsColumn, type Column, Listing } from "../../ui/table";
import { ManageUser } from "./user_drawer";

export function UsersPage() {
  const pages = usePages((offset, signal) => get("/api/v1/users", { query: pageQuery(offset), signal }), []);
  const [isCreating, setCreating] = useState(false);
  const [managed, setManaged] = useState<User>();
  const create = <Button variant="primary" icon="add" onClick={() => setCreating(true)}>{t("users.create")}</Button>;
  return (
    <Page title={t("nav.users")} actions={create}>
      <Listing
        label={t("nav.users")}
        pages={pages}
        columns={columns(setManaged)}
        rowKey={({ username }) => username}
        empty={{ icon: "user", title: t("users.empty") }}
      />
      {isCreating && <CreateUser onDone={pages.reload} onClose={() => setCreating(false)} />}
      {managed && (
        <ManageUser account={managed} onChange={setManaged} onDone={pages.reload} onClose={() => setManaged(undefined)} />
      )}
    </Page>
  );
}

function columns(manage: (user: User) => void): Column<User>[] {
  return [
    { label: t("login.username"), kind: "header", cell: ({ username }) => <Foreign>{username}</Foreign> },
    { label: t("account.role"), cell: ({ role }) => <RoleBadge role={role} /> },
    { label: t("users.state"), cell: (user) => <UserState user={user} /> },
    { label: t("common.created"), cell: ({ created_at }) => <Time at={created_at} /> },
    actionsColumn((user) => (
      <IconButton icon="settings" label={t("users.manage", { name: user.username })} onClick={() => manage(user)} />
    )),
  ];
}

function RoleBadge({ role }: { role: string }) {
  return <Badge kind={role === "admin" ? "accent" : "neutral"}>{tData("role", role)}</Badge>;
}

export function UserState({ user }: { user: User }) {
  if (user.disabled) return <Badge kind="danger">{t("users.disabled")}</Badge>;
  if (user.must_change_password) return <Badge kind="warning">{t("users.must_change")}</Badge>;
  return <Badge kind="ok">{t("users.active")}</Badge>;
}

function CreateUser({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState<"user" | "admin">("user");
  const [mustChange, setMustChange] = useState(true);
  const create = async () => {
    await post("/api/v1/users", { body: { username, password, role, must_change_password: mustChange } });
    say(t("users.created", { name: username }));
    onDone();
  };
  return (
    <FormDialog title={t("users.create")} submit={t("common.create")} onSubmit={create} onClose={onClose}>
      <TextField
        label={t("login.username")}
        hint={t("register.username_hint")}
        value={username}
        onInput={setUsername}
        required
        maxLength={64}
        pattern="[A-Za-z0-9._@\-]{3,64}"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      />
      <PasswordField value={password} onInput={setPassword} />
      <Select
        label={t("account.role")}
        value={role}
        choices={(["user", "admin"] as const).map((value) => ({ value, label: t(`role.${value}`) }))}
        onChange={(role) => setRole(role as "user" | "admin")}
      />
      <Checkbox label={t("users.change_at_login")} checked={mustChange} onChange={setMustChange} />
    </FormDialog>
  );
}

/** A password for somebody else. It is shown, because it has to be passed on. */
export function PasswordField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return (
    <TextField
      label={t("login.password")}
      hint={t("users.password_hint")}
      value={value}
      onInput={onInput}
      required
      pattern=".{8,128}"
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
    />
  );
}
