// The frame of a page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon";

interface PageProps {
  title: string;
  /** Where the page belongs: the page above it. */
  above?: { href: string; label: string } | undefined;
  /** Buttons beside the title. */
  actions?: ComponentChildren;
  /** The title is for screen readers only. */
  isTitleHidden?: boolean;
  width?: "text" | "wide" | "full";
  children: ComponentChildren;
}

export function Page({ title, above, actions, isTitleHidden = false, width = "wide", children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = title === "lkr" ? "lkr" : `${title} · lkr`;
  }, [title]);
  return (
    <div class={`page ${width}`}>
      <header class={isTitleHidden ? "visually-hidden" : "page-header"}>
        <div>
          {above && <a class="above" href={above.href}><Icon name="back" size={14} />{above.label}</a>}
          <h1 ref={heading} tabIndex={-1}><bdi>{title}</bdi></h1>
        </div>
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Focuses the page's heading if what had the focus is gone. */
export function focusHeadingIfLost(): void {
  if (document.activeElement === document.body) document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
}

/** A part of a page with a heading of its own. */
export function Section({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="section">
      <header class="section-header">
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}
