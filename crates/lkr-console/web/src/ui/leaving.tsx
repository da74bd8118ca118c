// What is lost with the page, such as changes that are not saved: whoever leaves it is asked first.
import { signal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { t, type MessageKey } from "../i18n";
import { isGivenUp } from "../session";
import { Confirm } from "./dialog";

/** How a person is asked whether something may be lost. */
export interface Question {
  title: MessageKey;
  text: MessageKey;
  confirm: MessageKey;
}

const CHANGES: Question = { title: "leave.title", text: "leave.text", confirm: "leave.discard" };

/** What is asked about the parts of the page that have something to lose, the latest last. */
const unsaved = signal<readonly { question: Question }[]>([]);

/** What leaves the page, while the person is asked about it. */
const leave = signal<(() => void) | undefined>(undefined);

/** While this is true, leaving the page asks first. */
export function useUnsaved(hasChanges: boolean, question = CHANGES): void {
  useLayoutEffect(() => {
    if (!hasChanges) return;
    const part = { question };
    unsaved.value = [...unsaved.peek(), part];
    return () => void (unsaved.value = unsaved.peek().filter((other) => other !== part));
  }, [hasChanges]);
}

// Text and buttons of this question are the browser's own.
window.addEventListener("beforeunload", (event) => {
  if (unsaved.peek().length > 0 && !isGivenUp) event.preventDefault();
});

/** The page that is shown. */
let here = { url: "", path: "" };

/** Whether the person has just been asked about the way that the browser turns. */
let isAllowed = false;

// The browser calls the listeners of this event in their order. The router's come later: it begins with the first rendering.
window.addEventListener("popstate", (event) => {
  if (isAllowed || unsaved.peek().length === 0 || location.pathname === here.path) {
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
      const target = unsaved.peek().length > 0 ? followed(event) : undefined;
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
  const question = unsaved.value.at(-1)?.question;
  return <Discard question={question} onDiscard={go} onClose={() => (leave.value = undefined)} />;
}

/** The page of this host that a click opens in this window, if it opens one. */
function followed(event: MouseEvent): URL | undefined {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return undefined;
  const link = event.composedPath().find((element) => element instanceof HTMLAnchorElement);
  if (link === undefined || link.target !== "" || link.hasAttribute("download")) return undefined;
  return link.origin === location.origin ? new URL(link.href) : undefined;
}

interface DiscardProps {
  question?: Question | undefined;
  onDiscard: () => void;
  onClose: () => void;
}

/** Asks whether something may be lost: changes that are not saved, unless the question tells another thing. */
export function Discard({ question = CHANGES, onDiscard, onClose }: DiscardProps) {
  return (
    <Confirm
      title={t(question.title)}
      confirm={t(question.confirm)}
      onConfirm={async () => onDiscard()}
      onClose={onClose}
    >
      <p>{t(question.text)}</p>
    </Confirm>
  );
}
