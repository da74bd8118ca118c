// Changes that are not saved: whoever leaves the page with them is asked first.
import { signal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { t } from "../i18n";
import { isGivenUp } from "../session";
import { Confirm } from "./dialog";

/** How many parts of the page have changes that are not saved. */
const unsaved = signal(0);

/** What leaves the page, while the person is asked about it. */
const leave = signal<(() => void) | undefined>(undefined);

/** While this is true, leaving the page asks first. */
export function useUnsaved(hasChanges: boolean): void {
  useLayoutEffect(() => {
    if (!hasChanges) return;
    unsaved.value++;
    return () => void unsaved.value--;
  }, [hasChanges]);
}

// Text and buttons of this question are the browser's own.
window.addEventListener("beforeunload", (event) => {
  if (unsaved.peek() > 0 && !isGivenUp) event.preventDefault();
});

/** The page that is shown. */
let here = { url: "", path: "" };

/** Whether the person has just been asked about the way that the browser turns. */
let isAllowed = false;

// The browser calls the listeners of this event in their order. The router's come later: it begins with the first rendering.
window.addEventListener("popstate", (event) => {
  if (isAllowed || unsaved.peek() === 0 || location.pathname === here.path) {
    isAllowed = false;
    return;
  }
  // The browser has turned already. The page takes its address back, behind which the other one stays.
  event.stopImmediatePropagation();
  history.pushState(null, "", here.url);
  leave.value = () => {
    isAllowed = true;
    history.back();
  };
});

/** Asks before another page of the console is opened, by a link or by the browser's buttons. */
export function LeaveGuard() {
  const { url, path, route } = useLocation();
  here = { url, path };
  useEffect(() => {
    const click = (event: MouseEvent) => {
      const target = unsaved.peek() > 0 ? followed(event) : undefined;
      if (target === undefined || target.pathname === here.path) return;
      event.preventDefault();
      event.stopPropagation();
      leave.value = () => route(target.pathname + target.search);
    };
    document.addEventListener("click", click, { capture: true });
    return () => document.removeEventListener("click", click, { capture: true });
  }, []);
  const go = leave.value;
  if (go === undefined) return null;
  return <Discard onDiscard={go} onClose={() => (leave.value = undefined)} />;
}

/** The page of this host that a click opens in this window, if it opens one. */
function followed(event: MouseEvent): URL | undefined {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return undefined;
  const link = event.composedPath().find((element) => element instanceof HTMLAnchorElement);
  if (link === undefined || link.target !== "" || link.hasAttribute("download")) return undefined;
  return link.origin === location.origin ? new URL(link.href) : undefined;
}

/** Asks whether changes that are not saved may go. */
export function Discard({ onDiscard, onClose }: { onDiscard: () => void; onClose: () => void }) {
  return (
    <Confirm
      title={t("leave.title")}
      confirm={t("leave.discard")}
      onConfirm={async () => onDiscard()}
      onClose={onClose}
    >
      <p>{t("leave.text")}</p>
    </Confirm>
  );
}
