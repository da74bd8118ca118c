// Tables of rows. On a phone each row is a card.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { Empty } from "./feedback";
import type { IconName } from "./icon";
import { Loaded } from "./loaded";
import { Pager, type Paged } from "./pager";

export interface Column<T> {
  /** What the column shows. It stands before the value where the row is a card. */
  label: string;
  /** `header` names the row; `actions` holds its buttons; `short` does not wrap; `long` is a text of its own. */
  kind?: "text" | "short" | "long" | "number" | "header" | "actions";
  cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
}

export function DataTable<T>({ label, columns, rows, rowKey }: TableProps<T>) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table class="cards">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.label} scope="col" class={column.kind ?? "text"}>
                {column.kind === "actions" ? <span class="visually-hidden">{column.label}</span> : column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => <Cell key={column.label} column={column} row={row} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell<T>({ column, row }: { column: Column<T>; row: T }) {
  const { kind = "text", label, cell } = column;
  if (kind === "header") return <th scope="row"><div>{cell(row)}</div></th>;
  if (kind === "actions") return <td class="actions">{cell(row)}</td>;
  return <td class={kind} data-label={label}><div>{cell(row)}</div></td>;
}

interface ListingProps<T> extends Omit<TableProps<T>, "rows"> {
  pages: Paged<T>;
  /** What is said where the list has no rows. */
  empty: { icon: IconName; title: string; text?: string };
}

/** A list of the server, page by page, with what is said while it loads, fails or is empty. */
export function Listing<T>({ pages, empty, ...table }: ListingProps<T>) {
  const frame = useRef<HTMLDivElement>(null);
  useKeptFocus(frame, pages.data?.items);
  return (
    <div ref={frame} class="stack listing" tabIndex={-1} aria-busy={pages.isLoading}>
      <Loaded resource={pages}>
        {({ items }) =>
          items.length > 0 ? (
            <DataTable {...table} rows={items} />
          ) : (
            <Empty icon={empty.icon} title={empty.title}>{empty.text && <p>{empty.text}</p>}</Empty>
          )
        }
      </Loaded>
      <Pager {...pages} />
    </div>
  );
}

/** Keeps the focus in the list when the row that had it is gone. */
function useKeptFocus(frame: RefObject<HTMLElement | null>, rows: unknown): void {
  const hadFocus = useRef(false);
  useEffect(() => {
    const enter = () => (hadFocus.current = true);
    const leave = (event: FocusEvent) => {
      if (event.relatedTarget !== null) hadFocus.current = false;
    };
    const element = frame.current;
    element?.addEventListener("focusin", enter);
    element?.addEventListener("focusout", leave);
    return () => {
      element?.removeEventListener("focusin", enter);
      element?.removeEventListener("focusout", leave);
    };
  }, []);
  useEffect(() => {
    if (hadFocus.current && document.activeElement === document.body) frame.current?.focus();
  }, [rows]);
}

/** The column of a row's buttons. */
export function actionsColumn<T>(cell: (row: T) => ComponentChildren): Column<T> {
  return { label: t("common.actions"), kind: "actions", cell };
}
