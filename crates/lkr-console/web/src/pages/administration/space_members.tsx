// The members of a space, for its managers.
import { useId, useState } from "preact/hooks";
import { listAll } from "../../api/all";
import { del, get, put, type Data } from "../../api/client";
import { t } from "../../i18n";
import { isAdmin } from "../../session";
import { Button, IconButton, Select, TextField } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Section } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { actionsColumn, Listing } from "../../ui/table";
import { useResource } from "../../use_resource";
import { MemberName, memberParts, roleChoices, SpaceRoleBadge, type SpaceRole } from "./names";

type Member = Data<"/api/v1/spaces/{space}/members", "get">["items"][number];

/** What is asked about the members. */
type Question = { kind: "add" } | { kind: "role" | "remove"; member: Member };

export function SpaceMembers({ space }: { space: string }) {
  const pages = usePages(
    (offset, signal) =>
      get("/api/v1/spaces/{space}/members", { path: { space }, query: pageQuery(offset), signal }),
    [space],
  );
  const [question, setQuestion] = useState<Question>();
  const dialog = { space, onDone: pages.reload, onClose: () => setQuestion(undefined) };
  const add = <Button icon="add" onClick={() => setQuestion({ kind: "add" })}>{t("members.add")}</Button>;
  return (
    <Section title={t("members.title")} actions={add}>
      <Listing
        label={t("members.title")}
        pages={pages}
        columns={columns(setQuestion)}
        rowKey={({ member }) => member}
        empty={{ icon: "group", title: t("members.empty"), text: t("members.empty_text") }}
      />
      {question?.kind === "add" && <AddMember {...dialog} />}
      {question?.kind === "role" && <ChangeRole {...dialog} member={question.member} />}
      {question?.kind === "remove" && <RemoveMember {...dialog} member={question.member} />}
    </Section>
  );
}

function columns(ask: (question: Question) => void) {
  const nameOf = (member: Member) => memberParts(member.member).name;
  return [
    { label: t("members.member"), kind: "header" as const, cell: ({ member }: Member) => <MemberName member={member} /> },
    { label: t("members.role"), cell: ({ role }: Member) => <SpaceRoleBadge role={role} /> },
    actionsColumn((member: Member) => (
      <>
        <IconButton
          icon="edit"
          label={t("members.change_role", { name: nameOf(member) })}
          onClick={() => ask({ kind: "role", member })}
        />
        <IconButton
          icon="trash"
          label={t("members.remove", { name: nameOf(member) })}
          onClick={() => ask({ kind: "remove", member })}
        />
      </>
    )),
  ];
}

interface DialogProps {
  space: string;
  onDone: () => void;
  onClose: () => void;
}

function AddMember({ space, onDone, onClose }: DialogProps) {
  const [kind, setKind] = useState<"user" | "group">("user");
  const [name, setName] = useState("");
  const [role, setRole] = useState<SpaceRole>("reader");
  const list = useId();
  const suggestions = useResource((signal) => loadNames(kind, signal), [kind]);
  const add = async () => {
    const member = `${kind}:${name.trim()}`;
    await put("/api/v1/spaces/{space}/members/{member}", { path: { space, member }, body: { role } });
    say(t("members.added", { name: name.trim() }));
    onDone();
  };
  return (
    <FormDialog title={t("members.add")} submit={t("common.add")} onSubmit={add} onClose={onClose}>
      <div class="fields">
        <Select
          label={t("members.kind")}
          value={kind}
          choices={(["user", "group"] as const).map((value) => ({ value, label: t(`member.${value}`) }))}
          onChange={(kind) => setKind(kind as "user" | "group")}
        />
        <Select label={t("members.role")} value={role} choices={roleChoices()} onChange={(role) => setRole(role as SpaceRole)} />
      </div>
      <p class="hint">{t(`space_role_hint.${role}`)}</p>
      <TextField
        label={t(kind === "user" ? "login.username" : "members.group_name")}
        value={name}
        onInput={setName}
        list={list}
        required
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      />
      <datalist id={list}>{suggestions.data?.map((name) => <option key={name} value={name} />)}</datalist>
    </FormDialog>
  );
}

/** The names that may be suggested: accounts are listed to admins only. */
async function loadNames(kind: "user" | "group", signal: AbortSignal): Promise<string[]> {
  if (kind === "group") {
    return (await listAll((query) => get("/api/v1/groups", { query, signal }))).map(({ group }) => group);
  }
  if (!isAdmin.value) return [];
  return (await listAll((query) => get("/api/v1/users", { query, signal }))).map(({ username }) => username);
}

function ChangeRole({ space, member, onDone, onClose }: DialogProps & { member: Member }) {
  const [role, setRole] = useState<SpaceRole>(member.role);
  const { name } = memberParts(member.member);
  const change = async () => {
    await put("/api/v1/spaces/{space}/members/{member}", { path: { space, member: member.member }, body: { role } });
    say(t("common.saved"));
    onDone();
  };
  return (
    <FormDialog title={t("members.change_role", { name })} submit={t("common.save")} onSubmit={change} onClose={onClose}>
      <Select
        label={t("members.role")}
        hint={t(`space_role_hint.${role}`)}
        value={role}
        choices={roleChoices()}
        onChange={(role) => setRole(role as SpaceRole)}
      />
    </FormDialog>
  );
}

function RemoveMember({ space, member, onDone, onClose }: DialogProps & { member: Member }) {
  const { name } = memberParts(member.member);
  const remove = async () => {
    await del("/api/v1/spaces/{space}/members/{member}", { path: { space, member: member.member } });
    say(t("members.removed", { name }));
    onDone();
  };
  return (
    <Confirm title={t("members.remove", { name })} confirm={t("common.remove")} onConfirm={remove} onClose={onClose}>
      <p>{t("members.remove_text")}</p>
    </Confirm>
  );
}
