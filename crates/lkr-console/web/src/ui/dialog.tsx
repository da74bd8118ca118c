// Dialogs. The browser's own element keeps the focus inside, closes with Escape and returns the focus.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { isHidden } from "../session";
import { useAction } from "../use_resource";
import { Button, Cancel, FormButtons, IconButton } from "./controls";
import { ErrorMessage } from "./feedback";
import { focusHeadingIfLost } from "./page";

interface DialogProps {
  title: string;
  /** `drawer` stands at the right edge over the full height. */
  shape?: "box" | "drawer";
  /** Neither Escape nor a click beside it closes the dialog. */
  isKept?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

/** What had the focus when a dialog was opened. */
const openers = new WeakMap<Element, Element>();
let lastDialog: Element | undefined;

/** Keeps what has the focus. If a dialog that is replaced by this one had it, that is what opened the other dialog. */
function noteOpener(dialog: Element): void {
  const isLost = document.activeElement === document.body && lastDialog?.isConnected === false;
  const opener = isLost && lastDialog ? openers.get(lastDialog) : document.activeElement;
  if (opener) openers.set(dialog, opener);
  lastDialog = dialog;
}

/** Focuses what opened a dialog; if that was in a dialog that is gone, what opened that one; else the page's heading. */
function returnFocus(dialog: Element): void {
  let opener = openers.get(dialog);
  while (opener && !opener.isConnected) {
    const above = opener.closest("dialog");
    opener = above ? openers.get(above) : undefined;
  }
  if (opener instanceof HTMLElement) opener.focus();
  focusHeadingIfLost();
}

/** An open dialog. It is closed by not being rendered. */
export function Dialog({ title, shape = "box", isKept = false, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget | null>(null);
  const id = useId();
  const leave = useRef(onClose);
  leave.current = () => {
    if (!isKept) onClose();
  };
  // A page that is hidden hides its dialogs too, or they would block the login. They are closed before the login takes the focus.
  const isClosed = isHidden.value;
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog === null || isClosed) return;
    if (!openers.has(dialog)) noteOpener(dialog);
    dialog.showModal();
    // A browser closes a dialog at the second Escape without asking: where the page keeps it, it is opened again.
    const reopen = () => {
      if (dialog.isConnected && !dialog.open) dialog.showModal();
      leave.current();
    };
    dialog.addEventListener("close", reopen);
    return () => {
      dialog.removeEventListener("close", reopen);
      dialog.close();
      if (!isHidden.peek()) returnFocus(dialog);
    };
  }, [isClosed]);
  return (
    <dialog
      ref={element}
      class={`dialog ${shape}`}
      aria-labelledby={id}
      onCancel={(event) => {
        if (!event.cancelable) return;
        event.preventDefault();
        leave.current();
      }}
      onKeyDown={(event) => {
        if (isKept && event.key === "Escape") event.preventDefault();
      }}
      onPointerDown={(event) => (pressed.current = event.target)}
      onClick={(event) => {
        // Whoever selects a text may release the mouse beside the dialog.
        if (event.target === element.current && pressed.current === element.current) leave.current();
      }}
    >
      <div class="dialog-frame">
        <header class="dialog-header">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label={t("common.close")} onClick={onClose} />
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  confirm: string;
  /** Whether what the dialog asks for is given. */
  isReady?: boolean;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, children, confirm, isReady = true, onConfirm, onClose }: ConfirmProps) {
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        <div>{children}</div>
        <ErrorMessage error={action.error} />
        <FormButtons>
          <Cancel onClick={onClose} />
          <Button variant="danger" isBusy={action.isBusy} disabled={!isReady} onClick={() => void action.run()}>{confirm}</Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}
