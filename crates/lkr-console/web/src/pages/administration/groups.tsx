// Groups of accounts.
import { useLocation } from "preact-iso/router";
import { useState } from "preact/hooks";
import { get, post, type Data } from "../../api/client";
import { t } from "../../i18n";
import { Button, TextField } from "../../ui/controls";
import { Foreign, Time } from "../../ui/data";
import { say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { type Column, Listing } from "../../ui/table";
import { NameField } from "./names";

type Group = Data<"/api/v1/groups", "get">["items"][number];

export function GroupsPage() {
  const pages = usePages((offset, signal) => get("/api/v1/groups", { query: pageQuery(offset), signal }), []);
  const [isCreating, setCreating] = useState(false);
  const create = <Button variant="primary" icon="add" onClick={() => setCreating(true)}>{t("groups.create")}</Button>;
  return (
    <Page title={t("nav.groups")} actions={create}>
      <p class="muted">{t("groups.intro")}</p>
      <Listing
        label={t("nav.groups")}
        pages={pages}
        columns={columns()}
        rowKey={({ group }) => group}
        empty={{ icon: "group", title: t("groups.empty") }}
      />
      {isCreating && <CreateGroup onClose={() => setCreating(false)} />}
    </Page>
  );
}

export function groupHref(group: string): string {
  return `/admin/groups/${encodeURIComponent(group)}`;
}

function columns(): Column<Group>[] {
  return [
    { label: t("common.name"), kind: "header", cell: ({ group }) => <a href={groupHref(group)}><Foreign>{group}</Foreign></a> },
    { label: t("common.title"), cell: ({ title }) => <Foreign>{title}</Foreign> },
    { label: t("groups.created_by"), cell: ({ created_by }) => <Foreign>{created_by}</Foreign> },
    { label: t("common.created"), cell: ({ created_at }) => <Time at={created_at} /> },
  ];
}

function CreateGroup({ onClose }: { onClose: () => void }) {
  const [group, setGroup] = useState("");
  const [title, setTitle] = useState("");
  const { route } = useLocation();
  const create = async () => {
    await post("/api/v1/groups", { body: { group, title } });
    say(t("groups.created", { name: group }));
    route(groupHref(group));
  };
  return (
    <FormDialog title={t("groups.create")} submit={t("common.create")} onSubmit={create} onClose={onClose}>
      <NameField hint={t("groups.name_hint")} value={group} onInput={setGroup} />
      <TextField label={t("common.title")} value={title} onInput={setTitle} maxLength={200} />
    </FormDialog>
  );
}
