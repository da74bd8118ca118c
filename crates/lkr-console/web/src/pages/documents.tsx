// The list of documents.
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { useTaskEvents } from "../api/task_events";
import type { Document } from "../api/types";
import { number, t } from "../i18n";
import { knownCategories, knownSpaces, useShared } from "../known";
import { addHref, documentHref } from "../routes";
import { user } from "../session";
import { isolated } from "../text";
import { Select, TextField, withChosen } from "../ui/controls";
import { Badge, Time } from "../ui/data";
import { Empty, ErrorMessage, Loading } from "../ui/feedback";
import { Icon } from "../ui/icon";
import { Page } from "../ui/page";
import { Pager, usePages } from "../ui/pager";
import { SpaceTitle, spaceChoices } from "../ui/space";
import { DeletionBar } from "./documents/deletion";
import { MOST_IDS, given, parseFilter, type Filter } from "./documents/filter";

const PAGE_SIZE = 50;
const TYPING_MS = 200;
/** Documents that become visible one after the other are shown at most this often. */
const REFRESH_MS = 5000;

export function DocumentsPage() {
  const { query, route } = useLocation();
  const filter = parseFilter(query);
  const pages = usePages<Document>(
    (offset, signal) => get("/api/v1/documents", { query: { ...given(filter), limit: PAGE_SIZE, ...(offset !== undefined && { offset }) }, signal }),
    [filter],
  );
  useFresh(pages.reload);
  const go = (change: Partial<Filter>) => {
    const search = new URLSearchParams(given({ ...filter, ...change })).toString();
    route(search === "" ? "/documents" : `/documents?${search}`, true);
  };
  const [selected, setSelected] = useState<ReadonlySet<string>>(NONE);
  useEffect(() => setSelected(NONE), [JSON.stringify(filter)]);
  const select = (ids: readonly string[], isSelected: boolean) => setSelected(changed(selected, ids, isSelected));
  const hasFilter = Object.keys(given(filter)).length > 0;
  return (
    <Page
      title={t("nav.documents")}
      actions={user.value && <a class="button primary" href={addHref(filter.space)}><Icon name="add" />{t("empty.add")}</a>}
    >
      <FilterRow filter={filter} onChange={go} />
      <ErrorMessage error={pages.error} onRetry={pages.reload} />
      {pages.data === undefined && pages.isLoading && <Loading rows={10} />}
      {user.value && <DeletionBar filter={filter} selected={selected} onClear={() => setSelected(NONE)} onDone={pages.reload} />}
      {pages.data && (
        <DocumentTable
          documents={pages.data.items}
          hasFilter={hasFilter}
          space={filter.space}
          isLoading={pages.isLoading}
          selected={selected}
          onSelect={select}
        />
      )}
      <Pager {...pages} />
    </Page>
  );
}

const NONE: ReadonlySet<string> = new Set();

/** The selection with these documents, or without them. */
function changed(selected: ReadonlySet<string>, ids: readonly string[], isSelected: boolean): ReadonlySet<string> {
  const next = new Set(selected);
  for (const id of ids) {
    if (!isSelected) next.delete(id);
    else if (next.size < MOST_IDS) next.add(id);
  }
  return next;
}

/** Loads the list again when documents came or went, not more often than every few seconds. */
function useFresh(reload: () => void): void {
  const last = useRef(0);
  const timer = useRef(0);
  const refresh = () => {
    clearTimeout(timer.current);
    const wait = Math.max(0, last.current + REFRESH_MS - Date.now());
    timer.current = window.setTimeout(() => {
      last.current = Date.now();
      reload();
    }, wait);
  };
  useTaskEvents((task) => task.status === "done" && refresh(), refresh);
  useEffect(() => () => clearTimeout(timer.current), []);
}

function FilterRow({ filter, onChange }: { filter: Filter; onChange: (change: Partial<Filter>) => void }) {
  const spaces = useShared(knownSpaces);
  const categories = useShared(knownCategories);
  const all = { value: "", label: t("common.all") };
  return (
    <div class="fields">
      <TypedField label={t("documents.find")} value={filter.q} onChange={(q) => onChange({ q })} />
      <Select
        label={t("document.space")}
        value={filter.space}
        choices={withChosen([all, ...spaceChoices(spaces.data ?? [])], filter.space)}
        onChange={(space) => onChange({ space })}
      />
      <Select
        label={t("document.category")}
        value={filter.category}
        choices={withChosen([all, ...(categories.data ?? []).map(({ name }) => ({ value: name, label: name }))], filter.category)}
        onChange={(category) => onChange({ category })}
      />
      <TypedField label={t("documents.source")} value={filter.source} onChange={(source) => onChange({ source })} />
    </div>
  );
}

/** A field whose value counts when the person pauses, or goes on to something else. */
function TypedField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  // What else was changed while the person typed counts, too.
  const latest = useRef(onChange);
  latest.current = onChange;
  // A space at the end may be followed by another word.
  useEffect(() => setTyped((typed) => (typed.trim() === value ? typed : value)), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <TextField
      label={label}
      type="search"
      value={typed}
      onInput={(text) => {
        setTyped(text);
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => latest.current(text.trim()), TYPING_MS);
      }}
      onBlur={() => {
        clearTimeout(timer.current);
        if (typed.trim() !== value) latest.current(typed.trim());
      }}
    />
  );
}

interface TableProps {
  documents: Document[];
  hasFilter: boolean;
  space: string;
  isLoading: boolean;
  selected: ReadonlySet<string>;
  onSelect: (ids: readonly string[], isSelected: boolean) => void;
}

function DocumentTable({ documents, hasFilter, space, isLoading, selected, onSelect }: TableProps) {
  if (documents.length === 0) {
    return (
      <Empty icon="documents" title={t(hasFilter ? "documents.none_match" : "empty.title")}>
        {!hasFilter && <p>{t("empty.text")}</p>}
        {user.value && <a class="button primary" href={addHref(space)}>{t("empty.add")}</a>}
      </Empty>
    );
  }
  const mayDelete = user.value !== null;
  const ids = documents.map(({ doc_id }) => doc_id);
  const areAllSelected = ids.every((id) => selected.has(id));
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={t("nav.documents")} aria-busy={isLoading}>
      <table class="cards documents">
        <thead>
          <tr>
            {mayDelete && (
              <th scope="col" class="select">
                <input
                  type="checkbox"
                  aria-label={t("documents.select_page")}
                  checked={areAllSelected}
                  onChange={(event) => onSelect(ids, event.currentTarget.checked)}
                />
              </th>
            )}
            <th scope="col">{t("common.title")}</th>
            <th scope="col">{t("document.space")}</th>
            <th scope="col">{t("document.category")}</th>
            <th scope="col" class="number">{t("layer.chunks")}</th>
            <th scope="col">{t("common.updated")}</th>
          </tr>
        </thead>
        <tbody>
          {documents.map((document) => (
            <tr key={document.doc_id}>
              {mayDelete && (
                <td class="select">
                  <input
                    type="checkbox"
                    aria-label={t("documents.select", { title: isolated(nameOf(document)) })}
                    checked={selected.has(document.doc_id)}
                    onChange={(event) => onSelect([document.doc_id], event.currentTarget.checked)}
                  />
                </td>
              )}
              <th scope="row">
                <a href={documentHref(document.doc_id)} dir="auto">{nameOf(document)}</a>
                <small class="below"><bdi>{document.source}</bdi></small>
              </th>
              <td data-label={t("document.space")}><SpaceTitle name={document.space} /></td>
              <td data-label={t("document.category")}>{document.category && <Badge><bdi>{document.category}</bdi></Badge>}</td>
              <td data-label={t("layer.chunks")} class="number">{number(document.chunk_count)}</td>
              <td data-label={t("common.updated")}><Time at={document.updated_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function nameOf({ title, source, doc_id }: Document): string {
  return title || source || doc_id;
}
