// Who changed what.
import { useLocation } from "preact-iso/router";
import { useEffect, useState } from "preact/hooks";
import { get, urlOf, type Data } from "../../api/client";
import { t, tData } from "../../i18n";
import { Button, Select, TextField, submitting } from "../../ui/controls";
import { ExactTime, Foreign } from "../../ui/data";
import { Page } from "../../ui/page";
import { pageQuery, usePages } from "../../ui/pager";
import { type Column, Listing } from "../../ui/table";
import { isAuditAction, AUDIT_ACTIONS } from "./audit_actions";

type Entry = Data<"/api/v1/audit", "get">["items"][number];

const HREF = "/admin/audit";

export function AuditPage() {
  const { query } = useLocation();
  const actor = query["actor"] ?? "";
  const action = query["action"] ?? "";
  const pages = usePages(
    (offset, signal) =>
      get("/api/v1/audit", {
        query: {
          ...pageQuery(offset),
          ...(actor !== "" && { actor }),
          ...(isAuditAction(action) && { action }),
        },
        signal,
      }),
    [actor, action],
  );
  return (
    <Page title={t("nav.audit")}>
      <p class="muted">{t("audit.intro")}</p>
      <Filters actor={actor} action={action} />
      <Listing
        label={t("nav.audit")}
        pages={pages}
        columns={columns()}
        rowKey={({ at, request_id, action, target }) => `${at} ${request_id} ${action} ${target}`}
        empty={{ icon: "shield", title: t("audit.empty"), text: t("audit.empty_text") }}
      />
    </Page>
  );
}

/** The filters are in the address, so that a view can be shared. */
function Filters({ actor, action }: { actor: string; action: string }) {
  const [typed, setTyped] = useState(actor);
  const { route } = useLocation();
  useEffect(() => setTyped(actor), [actor]);
  const go = (actor: string, action: string) => route(urlOf(HREF, { query: { actor: actor.trim(), action } }), true);
  const choices = AUDIT_ACTIONS.map((value) => ({ value, label: tData("audit_action", value) }));
  return (
    <form
      class="filter-row"
      role="search"
      onSubmit={submitting(() => go(typed, action))}
    >
      <Select
        label={t("audit.action")}
        value={action}
        choices={[{ value: "", label: t("common.all") }, ...choices]}
        onChange={(action) => go(typed, action)}
      />
      <TextField
        label={t("audit.actor")}
        placeholder={t("audit.actor_hint")}
        value={typed}
        onInput={setTyped}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      />
      <Button type="submit" icon="filter">{t("audit.filter")}</Button>
    </form>
  );
}

function columns(): Column<Entry>[] {
  return [
    { label: t("audit.at"), kind: "short", cell: ({ at }) => <ExactTime at={at} /> },
    { label: t("audit.actor"), cell: ({ actor }) => <Foreign>{actor}</Foreign> },
    { label: t("audit.action"), kind: "short", cell: ({ action }) => tData("audit_action", action) },
    { label: t("audit.target"), cell: ({ target }) => <Target name={target} /> },
    { label: t("audit.detail"), kind: "long", cell: ({ detail }) => <Details detail={detail} /> },
  ];
}

/** A name, or the id of something that has none. */
function Target({ name }: { name: string }) {
  const isId = /^[0-9a-f]{32}$/.test(name);
  return <span class={isId ? "mono id" : ""}><Foreign>{name}</Foreign></span>;
}

function Details({ detail }: { detail: Record<string, unknown> }) {
  const pairs = Object.entries(detail).map(([key, value]) => [key, valueText(value)] as const);
  if (pairs.length === 0) return null;
  return (
    <ul class="pairs">
      {pairs.map(([key, value]) => (
        <li key={key}><span class="muted">{tData("audit_detail", key)}:</span> <Foreign>{value}</Foreign></li>
      ))}
    </ul>
  );
}

function valueText(value: unknown): string {
  if (value === null) return t("common.none");
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  if (typeof value === "boolean") return t(value ? "common.yes" : "common.no");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
