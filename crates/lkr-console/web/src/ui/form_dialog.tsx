// Dialogs with a form, and the dialog that shows a secret once.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { isHidden } from "../session";
import { useAction } from "../use_resource";
import { Button, Cancel, CopyButton, Field, FormButtons, submitting } from "./controls";
import { Dialog } from "./dialog";
import { ErrorMessage, Notice, sayCopied } from "./feedback";
import { Discard, type Question, useUnsaved } from "./leaving";

interface FormDialogProps {
  title: string;
  submit: string;
  /** The dialog closes when this succeeds, unless it gives `false`, and shows the error otherwise. */
  onSubmit: () => Promise<void | false>;
  onClose: () => void;
  /** Whether something was changed that closing would lose. */
  isChanged?: boolean;
  children: ComponentChildren;
}

export function FormDialog({ title, submit, onSubmit, onClose, isChanged = false, children }: FormDialogProps) {
  const action = useAction(async () => {
    if ((await onSubmit()) !== false) onClose();
  });
  const [isAsking, setAsking] = useState(false);
  useUnsaved(isChanged);
  const close = () => (isChanged ? setAsking(true) : onClose());
  const form = useRef<HTMLFormElement>(null);
  // The dialog would begin at its button for closing.
  useLayoutEffect(() => form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), []);
  return (
    <Dialog title={title} onClose={close}>
      <form
        ref={form}
        class="stack"
        onSubmit={submitting(() => void action.run())}
      >
        {children}
        <ErrorMessage error={action.error} />
        <FormButtons>
          <Cancel onClick={close} />
          <Button variant="primary" type="submit" isBusy={action.isBusy}>{submit}</Button>
        </FormButtons>
      </form>
      {isAsking && <Discard onDiscard={onClose} onClose={() => setAsking(false)} />}
    </Dialog>
  );
}

interface SecretProps {
  title: string;
  /** What the secret is called. */
  label: string;
  secret: string;
  hint: string;
  onClose: () => void;
}

/** What is asked before a secret is lost of which the person has no copy. */
const WITHOUT_COPY: Question = { title: "secret.leave", text: "secret.leave_text", confirm: "secret.leave_confirm" };

/**
 * Shows a secret that the server does not tell again. Only its buttons close it, so that no stray click loses it. It begins
 * at the secret, so that neither does another press of the key that created it.
 */
export function SecretDialog({ title, label, secret, hint, onClose }: SecretProps) {
  const [isCopied, setCopied] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  // After the dialog's own effect, which opens it. A page that was hidden opens it again.
  const isClosed = isHidden.value;
  useLayoutEffect(() => field.current?.focus(), [isClosed]);
  useUnsaved(!isCopied, WITHOUT_COPY);
  const [isAsking, setAsking] = useState(false);
  const copied = (isDone: boolean) => {
    setCopied(isDone);
    sayCopied(isDone);
  };
  return (
    <Dialog title={title} onClose={isCopied ? onClose : () => setAsking(true)} isKept>
      {isAsking && <Discard question={WITHOUT_COPY} onDiscard={onClose} onClose={() => setAsking(false)} />}
      <div class="stack">
        <Notice kind="warning">{t("secret.once")}</Notice>
        <Field label={label} hint={hint}>
          {(ids) => (
            <textarea
              {...ids}
              ref={field}
              class="mono secret"
              rows={2}
              readOnly
              spellcheck={false}
              value={secret}
              onFocus={(event) => event.currentTarget.select()}
              onCopy={() => setCopied(true)}
            />
          )}
        </Field>
        <FormButtons>
          <CopyButton text={() => secret} label={t("common.copy")} onDone={copied} />
          <Button variant="primary" onClick={onClose}>{t("secret.done")}</Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}
