// A webhook and its last deliveries.
import { useLocation, useRoute } from "preact-iso/router";
import { useState } from "preact/hooks";
import { listAll } from "../../api/all";
import { del, get, type Data } from "../../api/client";
import { number, t, tData } from "../../i18n";
import { taskHref } from "../../routes";
import { isolated } from "../../text";
import { Button } from "../../ui/controls";
import { Badge, Fact, Facts, Foreign, Time, type BadgeKind } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { Empty, Loading, say } from "../../ui/feedback";
import { Loaded } from "../../ui/loaded";
import { Page, Section } from "../../ui/page";
import { type Column, DataTable } from "../../ui/table";
import { useResource } from "../../use_resource";
import { FailedPage, MissingPage } from "../errors";
import { EventBadges, WebhookSpace, type Webhook } from "./webhooks";

type Delivery = Data<"/api/v1/webhooks/{id}/deliveries", "get">["items"][number];

export function WebhookPage() {
  const id = useRoute().params["id"] ?? "";
  // The API lists webhooks but does not return one.
  const webhooks = useResource((signal) => listAll((query) => get("/api/v1/webhooks", { query, signal })), []);
  const above = { href: "/admin/webhooks", label: t("nav.webhooks") };
  const title = t("webhooks.title");
  if (webhooks.error && webhooks.data === undefined) {
    return <FailedPage error={webhooks.error} title={title} onRetry={webhooks.reload} />;
  }
  if (webhooks.data === undefined) return <Page title={title} above={above}><Loading /></Page>;
  const webhook = webhooks.data.find((webhook) => webhook.id === id);
  if (webhook === undefined) return <MissingPage />;
  return (
    <Page title={webhook.url} above={above} actions={<DeleteWebhook webhook={webhook} />}>
      <div class="card">
        <Facts>
          <Fact name={t("webhooks.events")}><EventBadges events={webhook.events} /></Fact>
          <Fact name={t("webhooks.space")}><WebhookSpace space={webhook.space} /></Fact>
          <Fact name={t("common.created")}>
            <Time at={webhook.created_at} /> <Foreign>{t("common.by", { name: webhook.created_by })}</Foreign>
          </Fact>
        </Facts>
      </div>
      <Deliveries id={id} />
    </Page>
  );
}

function Deliveries({ id }: { id: string }) {
  const deliveries = useResource((signal) => get("/api/v1/webhooks/{id}/deliveries", { path: { id }, signal }), [id]);
  const refresh = (
    <Button icon="retry" isBusy={deliveries.isLoading} onClick={deliveries.reload}>{t("common.refresh")}</Button>
  );
  return (
    <Section title={t("deliveries.title")} actions={refresh}>
      <Loaded resource={deliveries}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="webhook" title={t("deliveries.empty")}><p>{t("deliveries.empty_text")}</p></Empty>
          ) : (
            <DataTable label={t("deliveries.title")} columns={columns()} rows={items} rowKey={({ delivery_id }) => delivery_id} />
          )
        }
      </Loaded>
    </Section>
  );
}

function columns(): Column<Delivery>[] {
  return [
    { label: t("deliveries.at"), kind: "short", cell: ({ at }) => <Time at={at} /> },
    { label: t("deliveries.event"), kind: "short", cell: (delivery) => <Subject delivery={delivery} /> },
    { label: t("deliveries.state"), kind: "short", cell: ({ state }) => <State state={state} /> },
    { label: t("deliveries.status"), kind: "number", cell: ({ status }) => status ?? "–" },
    { label: t("deliveries.attempts"), kind: "number", cell: ({ attempts }) => number(attempts) },
    { label: t("deliveries.next"), kind: "short", cell: ({ next_attempt_at: next }) => next && <Time at={next} /> },
    { label: t("deliveries.error"), kind: "long", cell: ({ error }) => error && <Foreign>{error}</Foreign> },
  ];
}

const STATES: Record<string, BadgeKind> = {
  waiting: "neutral",
  delivered: "ok",
  expired: "danger",
  dropped: "danger",
};

/** The event, with the way to its task. The document of a deletion is gone. */
function Subject({ delivery: { event, task_id: task } }: { delivery: Delivery }) {
  const name = tData("webhook_event", event);
  return task === null ? <>{name}</> : <a href={taskHref(task)}>{name}</a>;
}

function State({ state }: { state: string }) {
  return <Badge kind={STATES[state] ?? "neutral"}>{tData("delivery_state", state)}</Badge>;
}

function DeleteWebhook({ webhook }: { webhook: Webhook }) {
  const [isAsking, setAsking] = useState(false);
  const { route } = useLocation();
  const remove = async () => {
    await del("/api/v1/webhooks/{id}", { path: { id: webhook.id } });
    say(t("webhooks.deleted"));
    route("/admin/webhooks");
  };
  return (
    <>
      <Button variant="danger" icon="trash" onClick={() => setAsking(true)}>{t("webhooks.delete")}</Button>
      {isAsking && (
        <Confirm title={t("webhooks.delete")} confirm={t("webhooks.delete")} onConfirm={remove} onClose={() => setAsking(false)}>
          <p>{t("webhooks.delete_text", { url: isolated(webhook.url) })}</p>
        </Confirm>
      )}
    </>
  );
}
