// A space: what it is, who its members are, and its end.
import { useLocation, useRoute } from "preact-iso/router";
import { useState } from "preact/hooks";
import { del, get, patch } from "../../api/client";
import type { Space } from "../../api/types";
import { number, t } from "../../i18n";
import { knownSpaces } from "../../known";
import { mayAdd } from "../../rights";
import { user } from "../../session";
import { addHref, taskHref } from "../../routes";
import { Button, TextField } from "../../ui/controls";
import { Fact, Facts, Foreign, Time } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { Loading, say } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { Icon } from "../../ui/icon";
import { Page, Section } from "../../ui/page";
import { useResource } from "../../use_resource";
import { FailedPage } from "../errors";
import { SpaceRoleBadge } from "./names";
import { changesOf, type SpaceFacts, SpaceFields } from "./space_fields";
import { SpaceMembers } from "./space_members";

/** The space that is always there. */
const DEFAULT_SPACE = "default";

export function SpacePage() {
  const name = useRoute().params["space"] ?? "";
  const space = useResource((signal) => get("/api/v1/spaces/{space}", { path: { space: name }, signal }), [name]);
  const [isEditing, setEditing] = useState(false);
  if (space.error && space.data === undefined) return <FailedPage error={space.error} title={name} onRetry={space.reload} />;
  const isManager = space.data?.your_role === "manager";
  const title = space.data?.title || name;
  const above = { href: "/spaces", label: t("nav.spaces") };
  return (
    <Page title={title} above={above} actions={<Actions name={name} space={space.data} onEdit={isManager ? () => setEditing(true) : undefined} />}>
      {space.data === undefined ? <Loading /> : <SpaceAsItIs space={space.data} />}
      {isManager && <SpaceMembers key={name} space={name} />}
      {space.data && isManager && name !== DEFAULT_SPACE && <SpaceEnd space={space.data} />}
      {isEditing && space.data && (
        <EditSpace space={space.data} onDone={space.replace} onClose={() => setEditing(false)} />
      )}
    </Page>
  );
}

interface ActionsProps {
  name: string;
  space: Space | undefined;
  onEdit: (() => void) | undefined;
}

function Actions({ name, space, onEdit }: ActionsProps) {
  const query = `space=${encodeURIComponent(name)}`;
  return (
    <>
      <a class="button" href={`/documents?${query}`}><Icon name="documents" />{t("nav.documents")}</a>
      <a class="button" href={`/?${query}`}><Icon name="search" />{t("spaces.search")}</a>
      {user.value && space && mayAdd(space) && <a class="button" href={addHref(name)}><Icon name="upload" />{t("empty.add")}</a>}
      {onEdit && <Button icon="edit" onClick={onEdit}>{t("common.edit")}</Button>}
    </>
  );
}

function SpaceAsItIs({ space }: { space: Space }) {
  return (
    <div class="card stack">
      {space.description !== "" && <p class="kept-lines" dir="auto">{space.description}</p>}
      <Facts>
        <Fact name={t("common.name")}><span class="mono"><Foreign>{space.space}</Foreign></span></Fact>
        <Fact name={t("spaces.documents")}>{number(space.documents)}</Fact>
        <Fact name={t("spaces.your_role")}><SpaceRoleBadge role={space.your_role} /></Fact>
        <Fact name={t("spaces.read")}>{t(`space_read.${space.read}`)}</Fact>
        <Fact name={t("spaces.write")}>{t(`space_write.${space.write}`)}</Fact>
        <Fact name={t("common.created")}>
          <Time at={space.created_at} />
          {space.created_by !== "" && <> <Foreign>{t("common.by", { name: space.created_by })}</Foreign></>}
        </Fact>
        <Fact name={t("common.updated")}><Time at={space.updated_at} /></Fact>
      </Facts>
    </div>
  );
}

interface EditProps {
  space: Space;
  onDone: (space: Space) => void;
  onClose: () => void;
}

function EditSpace({ space: shown, onDone, onClose }: EditProps) {
  // What somebody else changes meanwhile stays, such as who may read: only what is changed here is sent.
  const [space] = useState(shown);
  const { title, description, read, write } = space;
  const [facts, setFacts] = useState<SpaceFacts>({ title, description, read, write });
  const changed = changesOf(space, facts);
  const isChanged = Object.keys(changed).length > 0;
  const save = async () => {
    if (!isChanged) return onClose();
    onDone(await patch("/api/v1/spaces/{space}", { path: { space: space.space }, body: changed }));
    knownSpaces.renew();
    say(t("common.saved"));
  };
  return (
    <FormDialog title={t("spaces.edit")} submit={t("common.save")} isChanged={isChanged} onSubmit={save} onClose={onClose}>
      <SpaceFields facts={facts} onChange={setFacts} />
    </FormDialog>
  );
}

function SpaceEnd({ space }: { space: Space }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <Section title={t("spaces.delete")}>
      <div class="spread">
        <p class="muted">{t("spaces.delete_hint")}</p>
        <Button variant="danger" icon="trash" onClick={() => setAsking(true)}>{t("spaces.delete")}</Button>
      </div>
      {isAsking && <DeleteSpace space={space} onClose={() => setAsking(false)} />}
    </Section>
  );
}

/** With documents, the name must be typed: nothing brings them back. */
function DeleteSpace({ space, onClose }: { space: Space; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const { route } = useLocation();
  const name = space.space;
  const hasDocuments = space.documents > 0;
  const remove = async () => {
    const done = await del("/api/v1/spaces/{space}", {
      path: { space: name },
      ...(hasDocuments && { query: { documents: "delete" } }),
    });
    knownSpaces.renew();
    say(t("task_id" in done ? "spaces.deleting" : "spaces.deleted", { name }));
    route("task_id" in done ? taskHref(done.task_id) : "/spaces");
  };
  return (
    <Confirm
      title={t("spaces.delete_ask", { name })}
      confirm={t("spaces.delete")}
      isReady={!hasDocuments || typed === name}
      onConfirm={remove}
      onClose={onClose}
    >
      <div class="stack">
        <p>{hasDocuments ? t("spaces.delete_documents", { n: space.documents }) : t("spaces.delete_empty")}</p>
        {hasDocuments && (
          <TextField
            label={t("spaces.delete_type", { name })}
            value={typed}
            onInput={setTyped}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
          />
        )}
      </div>
    </Confirm>
  );
}
