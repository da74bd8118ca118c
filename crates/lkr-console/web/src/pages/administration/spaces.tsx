// The spaces that the person may read.
import { useLocation } from "preact-iso/router";
import { useState } from "preact/hooks";
import { get, post } from "../../api/client";
import type { Space } from "../../api/types";
import { number, t } from "../../i18n";
import { knownSpaces } from "../../known";
import { spaceHref } from "../../routes";
import { isAdmin } from "../../session";
import { Button } from "../../ui/controls";
import { say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { type Column, Listing } from "../../ui/table";
import { NameField, SpaceName, SpaceRoleBadge } from "./names";
import { newSpace, type SpaceFacts, SpaceFields } from "./space_fields";

export function SpacesPage() {
  const pages = usePages((offset, signal) => get("/api/v1/spaces", { query: pageQuery(offset), signal }), []);
  const [isCreating, setCreating] = useState(false);
  const actions = isAdmin.value && (
    <Button variant="primary" icon="add" onClick={() => setCreating(true)}>{t("spaces.create")}</Button>
  );
  return (
    <Page title={t("nav.spaces")} actions={actions}>
      <p class="muted">{t("spaces.intro")}</p>
      <Listing
        label={t("nav.spaces")}
        pages={pages}
        columns={columns()}
        rowKey={({ space }) => space}
        empty={{ icon: "space", title: t("spaces.empty") }}
      />
      {isCreating && <CreateSpace onClose={() => setCreating(false)} />}
    </Page>
  );
}

function columns(): Column<Space>[] {
  return [
    { label: t("spaces.space"), kind: "header", cell: (space) => <SpaceName space={space} /> },
    {
      label: t("common.description"),
      kind: "long",
      cell: ({ description }) => description !== "" && <span class="clamped" dir="auto">{description}</span>,
    },
    { label: t("spaces.documents"), kind: "number", cell: ({ documents }) => number(documents) },
    { label: t("spaces.read"), kind: "short", cell: ({ read }) => t(`space_read.${read}`) },
    { label: t("spaces.write"), kind: "short", cell: ({ write }) => t(`space_write.${write}`) },
    { label: t("spaces.your_role"), cell: ({ your_role }) => <SpaceRoleBadge role={your_role} /> },
  ];
}

function CreateSpace({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [facts, setFacts] = useState<SpaceFacts>(newSpace);
  const { route } = useLocation();
  const create = async () => {
    await post("/api/v1/spaces", { body: { space: name, ...facts } });
    knownSpaces.renew();
    say(t("spaces.created", { name }));
    route(spaceHref(name));
  };
  return (
    <FormDialog title={t("spaces.create")} submit={t("common.create")} onSubmit={create} onClose={onClose}>
      <NameField hint={t("spaces.name_hint")} value={name} onInput={setName} />
      <SpaceFields facts={facts} onChange={setFacts} />
    </FormDialog>
  );
}
