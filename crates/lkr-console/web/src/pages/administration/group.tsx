// A group and the accounts in it.
import { useLocation, useRoute } from "preact-iso/router";
import { useId, useState } from "preact/hooks";
import { listAll } from "../../api/all";
import { del, get, put } from "../../api/client";
import { t } from "../../i18n";
import { Button, IconButton, TextField } from "../../ui/controls";
import { Foreign } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { actionsColumn, Listing } from "../../ui/table";
import { useResource } from "../../use_resource";
import { FailedPage } from "../errors";

type Question = { kind: "add" | "delete" } | { kind: "remove"; username: string };

export function GroupPage() {
  const group = useRoute().params["group"] ?? "";
  const pages = usePages(
    (offset, signal) =>
      get("/api/v1/groups/{group}/members", { path: { group }, query: pageQuery(offset), signal }),
    [group],
  );
  const [question, setQuestion] = useState<Question>();
  const close = () => setQuestion(undefined);
  if (pages.error && pages.data === undefined) return <FailedPage error={pages.error} title={group} onRetry={pages.reload} />;
  return (
    <Page title={group} above={{ href: "/admin/groups", label: t("nav.groups") }} actions={<Actions ask={setQuestion} />}>
      <p class="muted">{t("groups.members_intro")}</p>
      <Listing
        label={t("members.title")}
        pages={pages}
        columns={columns((username) => setQuestion({ kind: "remove", username }))}
        rowKey={({ username }) => username}
        empty={{ icon: "group", title: t("groups.no_members"), text: t("groups.no_members_text") }}
      />
      {question?.kind === "add" && <AddAccount group={group} onDone={pages.reload} onClose={close} />}
      {question?.kind === "remove" && (
        <RemoveAccount group={group} username={question.username} onDone={pages.reload} onClose={close} />
      )}
      {question?.kind === "delete" && <DeleteGroup group={group} onClose={close} />}
    </Page>
  );
}

function Actions({ ask }: { ask: (question: Question) => void }) {
  return (
    <>
      <Button variant="danger" icon="trash" onClick={() => ask({ kind: "delete" })}>{t("groups.delete")}</Button>
      <Button variant="primary" icon="add" onClick={() => ask({ kind: "add" })}>{t("groups.add")}</Button>
    </>
  );
}

function columns(remove: (username: string) => void) {
  return [
    {
      label: t("login.username"),
      kind: "header" as const,
      cell: ({ username }: { username: string }) => <Foreign>{username}</Foreign>,
    },
    actionsColumn(({ username }: { username: string }) => (
      <IconButton icon="trash" label={t("groups.remove", { name: username })} onClick={() => remove(username)} />
    )),
  ];
}

interface DialogProps {
  group: string;
  onDone: () => void;
  onClose: () => void;
}

function AddAccount({ group, onDone, onClose }: DialogProps) {
  const [name, setName] = useState("");
  const list = useId();
  const users = useResource((signal) => listAll((query) => get("/api/v1/users", { query, signal })), []);
  const add = async () => {
    const username = name.trim();
    await put("/api/v1/groups/{group}/members/{username}", { path: { group, username } });
    say(t("members.added", { name: username }));
    onDone();
  };
  return (
    <FormDialog title={t("groups.add")} submit={t("common.add")} onSubmit={add} onClose={onClose}>
      <TextField
        label={t("login.username")}
        value={name}
        onInput={setName}
        list={list}
        required
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      />
      <datalist id={list}>{users.data?.map(({ username }) => <option key={username} value={username} />)}</datalist>
    </FormDialog>
  );
}

function RemoveAccount({ group, username, onDone, onClose }: DialogProps & { username: string }) {
  const remove = async () => {
    await del("/api/v1/groups/{group}/members/{username}", { path: { group, username } });
    say(t("members.removed", { name: username }));
    onDone();
  };
  return (
    <Confirm title={t("groups.remove", { name: username })} confirm={t("common.remove")} onConfirm={remove} onClose={onClose}>
      <p>{t("groups.remove_text")}</p>
    </Confirm>
  );
}

function DeleteGroup({ group, onClose }: { group: string; onClose: () => void }) {
  const { route } = useLocation();
  const remove = async () => {
    await del("/api/v1/groups/{group}", { path: { group } });
    say(t("groups.deleted", { name: group }));
    route("/admin/groups");
  };
  return (
    <Confirm title={t("groups.delete_ask", { name: group })} confirm={t("groups.delete")} onConfirm={remove} onClose={onClose}>
      <p>{t("groups.delete_text")}</p>
    </Confirm>
  );
}
