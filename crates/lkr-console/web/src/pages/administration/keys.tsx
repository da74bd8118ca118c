// The API keys of the person's own account.
import { useState } from "preact/hooks";
import { del, get, type Data } from "../../api/client";
import { t } from "../../i18n";
import { isolated } from "../../text";
import { Button, IconButton } from "../../ui/controls";
import { Badge, Foreign, Time } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { say } from "../../ui/feedback";
import { SecretDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { actionsColumn, type Column, Listing } from "../../ui/table";
import { CreateKey } from "./key_form";
import { SpaceBadge } from "../../ui/space";

type Key = Data<"/api/v1/auth/keys", "get">["items"][number];

export function KeysPage() {
  const pages = usePages((offset, signal) => get("/api/v1/auth/keys", { query: pageQuery(offset), signal }), []);
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<string>();
  const [revoked, setRevoked] = useState<Key>();
  const created = (secret: string) => {
    setShown(secret);
    pages.reload();
  };
  const create = <Button variant="primary" icon="add" onClick={() => setCreating(true)}>{t("keys.create")}</Button>;
  return (
    <Page title={t("nav.keys")} actions={create}>
      <p class="muted">{t("keys.intro")}</p>
      <Listing
        label={t("nav.keys")}
        pages={pages}
        columns={columns(setRevoked)}
        rowKey={({ id }) => id}
        empty={{ icon: "key", title: t("keys.empty"), text: t("keys.empty_text") }}
      />
      {isCreating && <CreateKey onDone={created} onClose={() => setCreating(false)} />}
      {shown !== undefined && (
        <SecretDialog
          title={t("keys.shown")}
          label={t("keys.key")}
          secret={shown}
          hint={t("keys.shown_hint")}
          onClose={() => setShown(undefined)}
        />
      )}
      {revoked && <RevokeKey apiKey={revoked} onDone={pages.reload} onClose={() => setRevoked(undefined)} />}
    </Page>
  );
}

function columns(revoke: (key: Key) => void): Column<Key>[] {
  return [
    { label: t("common.name"), kind: "header", cell: ({ name }) => <Foreign>{name}</Foreign> },
    { label: t("keys.scope"), kind: "short", cell: ({ scope }) => t(`key_scope.${scope}`) },
    { label: t("keys.spaces"), cell: ({ spaces }) => <KeySpaces spaces={spaces} /> },
    { label: t("keys.expires"), cell: ({ expires_at }) => <Expiry at={expires_at} /> },
    { label: t("common.created"), cell: ({ created_at }) => <Time at={created_at} /> },
    actionsColumn((key) => (
      <IconButton icon="trash" label={t("keys.revoke_of", { name: isolated(key.name) })} onClick={() => revoke(key)} />
    )),
  ];
}

function KeySpaces({ spaces }: { spaces: string[] | null }) {
  if (spaces === null) return <>{t("spaces.all")}</>;
  return <span class="row">{spaces.map((space) => <SpaceBadge key={space} name={space} />)}</span>;
}

function Expiry({ at }: { at: string | null }) {
  if (at === null) return <>{t("common.never")}</>;
  if (Date.parse(at) <= Date.now()) return <Badge kind="danger">{t("keys.expired")}</Badge>;
  return <Time at={at} />;
}

function RevokeKey({ apiKey, onDone, onClose }: { apiKey: Key; onDone: () => void; onClose: () => void }) {
  const revoke = async () => {
    await del("/api/v1/auth/keys/{id}", { path: { id: apiKey.id } });
    say(t("keys.revoked", { name: isolated(apiKey.name) }));
    onDone();
  };
  const title = t("keys.revoke_of", { name: isolated(apiKey.name) });
  return (
    <Confirm title={title} confirm={t("keys.revoke")} onConfirm={revoke} onClose={onClose}>
      <p>{t("keys.revoke_text")}</p>
    </Confirm>
  );
}
