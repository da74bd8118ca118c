// The webhooks: where events are posted to.
import { useState } from "preact/hooks";
import { get, post, type Data } from "../../api/client";
import { t, tData } from "../../i18n";
import { knownSpaces, useShared } from "../../known";
import { Button, Checkbox, Select, TextField } from "../../ui/controls";
import { Badge, Foreign, Time } from "../../ui/data";
import { say } from "../../ui/feedback";
import { FormDialog, SecretDialog } from "../../ui/form_dialog";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { type Column, Listing } from "../../ui/table";
import { SpaceBadge } from "../../ui/space";
import { spaceOrAllChoices } from "./names";

export type Webhook = Data<"/api/v1/webhooks", "get">["items"][number];
type EventName = Webhook["events"][number];

const EVENTS: EventName[] = ["task.done", "task.failed", "document.deleted"];

export function WebhooksPage() {
  const pages = usePages((offset, signal) => get("/api/v1/webhooks", { query: pageQuery(offset), signal }), []);
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const created = (secret: string | null) => {
    if (secret === null) say(t("webhooks.created"));
    else setSecret(secret);
    pages.reload();
  };
  const create = <Button variant="primary" icon="add" onClick={() => setCreating(true)}>{t("webhooks.create")}</Button>;
  return (
    <Page title={t("nav.webhooks")} actions={create}>
      <p class="muted">{t("webhooks.intro")}</p>
      <Listing
        label={t("nav.webhooks")}
        pages={pages}
        columns={columns()}
        rowKey={({ id }) => id}
        empty={{ icon: "webhook", title: t("webhooks.empty"), text: t("webhooks.empty_text") }}
      />
      {isCreating && <CreateWebhook onDone={created} onClose={() => setCreating(false)} />}
      {secret !== undefined && (
        <SecretDialog
          title={t("webhooks.shown")}
          label={t("webhooks.secret")}
          secret={secret}
          hint={t("webhooks.shown_hint")}
          onClose={() => setSecret(undefined)}
        />
      )}
    </Page>
  );
}

export function EventBadges({ events }: { events: readonly string[] }) {
  return (
    <span class="row">
      {events.map((event) => <Badge key={event}>{tData("webhook_event", event)}</Badge>)}
    </span>
  );
}

export function WebhookSpace({ space }: { space: string | null }) {
  return space === null ? <>{t("spaces.all")}</> : <SpaceBadge name={space} />;
}

function columns(): Column<Webhook>[] {
  return [
    {
      label: t("webhooks.url"),
      kind: "header",
      cell: ({ id, url }) => <a href={`/admin/webhooks/${id}`}><Foreign>{url}</Foreign></a>,
    },
    { label: t("webhooks.events"), cell: ({ events }) => <EventBadges events={events} /> },
    { label: t("webhooks.space"), cell: ({ space }) => <WebhookSpace space={space} /> },
    { label: t("common.created"), cell: ({ created_at }) => <Time at={created_at} /> },
  ];
}

interface CreateProps {
  /** The secret, unless the person chose it. */
  onDone: (secret: string | null) => void;
  onClose: () => void;
}

function CreateWebhook({ onDone, onClose }: CreateProps) {
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<EventName[]>(EVENTS);
  const [space, setSpace] = useState("");
  const [secret, setSecret] = useState("");
  const spaces = useShared(knownSpaces);
  const create = async () => {
    const body = { url: url.trim(), events, ...(space !== "" && { space }), ...(secret !== "" && { secret }) };
    const created = await post("/api/v1/webhooks", { body });
    onDone(secret === "" ? created.secret : null);
  };
  return (
    <FormDialog title={t("webhooks.create")} submit={t("common.create")} onSubmit={create} onClose={onClose}>
      <TextField
        label={t("webhooks.url")}
        hint={t("webhooks.url_hint")}
        type="url"
        value={url}
        onInput={setUrl}
        placeholder="https://example.org/hook"
        pattern="https?://[^\s@]+"
        required
        maxLength={2048}
      />
      <EventChoice chosen={events} onChange={setEvents} />
      <Select
        label={t("webhooks.space")}
        hint={t("webhooks.space_hint")}
        value={space}
        choices={spaceOrAllChoices(spaces.data)}
        onChange={setSpace}
      />
      <TextField
        label={`${t("webhooks.own_secret")} (${t("common.optional")})`}
        hint={t("webhooks.own_secret_hint")}
        type="password"
        value={secret}
        onInput={setSecret}
        autocomplete="new-password"
      />
    </FormDialog>
  );
}

function EventChoice({ chosen, onChange }: { chosen: EventName[]; onChange: (chosen: EventName[]) => void }) {
  const toggle = (event: EventName, isChosen: boolean) =>
    onChange(EVENTS.filter((name) => (name === event ? isChosen : chosen.includes(name))));
  return (
    <fieldset>
      <legend>{t("webhooks.events")}</legend>
      <div class="stack tight">
        {EVENTS.map((event) => (
          <Checkbox
            key={event}
            label={tData("webhook_event", event)}
            checked={chosen.includes(event)}
            onChange={(isChosen) => toggle(event, isChosen)}
          />
        ))}
      </div>
      {chosen.length === 0 && <p class="field-error" role="status">{t("webhooks.events_missing")}</p>}
    </fieldset>
  );
}
