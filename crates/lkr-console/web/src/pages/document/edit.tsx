// Changing a document: its properties, its content, or its end.
import { useEffect, useRef, useState } from "preact/hooks";
import { patch, urlOf } from "../../api/client";
import { sendFile } from "../../api/upload";
import type { Document } from "../../api/types";
import { t } from "../../i18n";
import { knownCategories, knownSpaces, useShared } from "../../known";
import { mayAdd } from "../../rights";
import { isolated } from "../../text";
import { useAction } from "../../use_resource";
import { Button, Cancel, FormButtons, Select, TextArea, TextField, withChosen } from "../../ui/controls";
import { Progress } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { DropZone, acceptedFiles } from "../../ui/drop_zone";
import { ErrorMessage } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { spaceChoices } from "../../ui/space";
import { checkReadable, whyLeftOut } from "../add/queue";
import { editedOf, parseMetadata } from "./metadata";

interface EditProps {
  document: Document;
  onDone: () => void;
  onClose: () => void;
}

export function EditDialog({ document: shown, onDone, onClose }: EditProps) {
  // What somebody else changes meanwhile stays: only what is changed here is sent.
  const [document] = useState(shown);
  const stored = editedOf(document.metadata);
  const [title, setTitle] = useState(document.title);
  const [source, setSource] = useState(document.source);
  const [category, setCategory] = useState(document.category);
  const [space, setSpace] = useState(document.space);
  const [metadata, setMetadata] = useState(stored.lines);
  const [fault, setFault] = useState<string>();
  const spaces = useShared(knownSpaces);
  const writable = spaces.data?.filter((one) => one.space === document.space || mayAdd(one)) ?? [];
  const categories = useShared(knownCategories);
  const before = parseMetadata(stored);
  const parsed = parseMetadata({ lines: metadata, kept: stored.kept });
  const changed = {
    ...(title !== document.title && { title }),
    ...(source !== document.source && { source }),
    ...(category !== document.category && { category }),
    ...(space !== document.space && { space }),
    ...("metadata" in parsed && !isSame(parsed, before) && { metadata: parsed.metadata }),
  };
  const isChanged = "fault" in parsed || Object.keys(changed).length > 0;
  const save = async (): Promise<void | false> => {
    setFault("fault" in parsed ? t("document.metadata_fault", { line: isolated(parsed.fault) }) : undefined);
    if ("fault" in parsed) return false;
    const path = { doc_id: document.doc_id };
    if (isChanged) await patch("/api/v1/documents/{doc_id}", { path, body: changed });
    onDone();
    return undefined;
  };
  const names = categories.data?.map(({ name }) => ({ value: name, label: name })) ?? [];
  return (
    <FormDialog title={t("document.edit")} submit={t("common.save")} isChanged={isChanged} onSubmit={save} onClose={onClose}>
      <TextField label={t("common.title")} value={title} maxLength={4096} onInput={setTitle} />
      <TextField label={t("document.source")} value={source} maxLength={4096} onInput={setSource} />
      <Select
        label={t("document.category")}
        value={category}
        choices={withChosen([{ value: "", label: t("category.none") }, ...names], document.category)}
        onChange={setCategory}
      />
      <Select
        label={t("document.space")}
        value={space}
        choices={withChosen(spaceChoices(writable), document.space)}
        onChange={setSpace}
      />
      <TextArea
        label={t("document.metadata")}
        hint={t("document.metadata_hint")}
        error={fault}
        value={metadata}
        onInput={setMetadata}
        spellcheck={false}
      />
      {stored.kept.length > 0 && (
        <p class="hint">{t("document.metadata_kept", { keys: stored.kept.map(([key]) => isolated(key)).join(", ") })}</p>
      )}
    </FormDialog>
  );
}

type Parsed = ReturnType<typeof parseMetadata>;

function isSame(a: Parsed, b: Parsed): boolean {
  if (!("metadata" in a) || !("metadata" in b)) return false;
  const keys = Object.keys(a.metadata);
  const other = b.metadata;
  return keys.length === Object.keys(other).length && keys.every((key) => a.metadata[key] === other[key]);
}

interface ReplaceProps {
  docId: string;
  title: string;
  source: string;
  onDone: (taskId: string) => void;
  onClose: () => void;
}

/** Takes a new file for the document. */
export function ReplaceDialog({ docId, title, source, onDone, onClose }: ReplaceProps) {
  const [file, setFile] = useState<File>();
  const [sent, setSent] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const sending = useRef<AbortController>(undefined);
  // Closing the dialog ends what it sends: the document stays as it is.
  useEffect(() => () => sending.current?.abort(), []);
  const leftOut = file && whyLeftOut(file.name, file.size);
  const action = useAction(async () => {
    if (file === undefined) return;
    const controller = new AbortController();
    sending.current = controller;
    await checkReadable(file);
    const form = new FormData();
    form.set("title", title);
    form.set("source", source);
    form.set("file", file, file.name);
    try {
      const { task_id } = await sendFile({
        method: "PUT",
        url: urlOf("/api/v1/documents/{doc_id}/file", { path: { doc_id: docId } }),
        form,
        signal: controller.signal,
        onProgress: setSent,
      });
      if (!controller.signal.aborted) onDone(task_id);
    } catch (cause) {
      if (!controller.signal.aborted) throw cause;
    }
  });
  return (
    <Dialog title={t("document.replace")} onClose={onClose}>
      <div class="stack">
        <p>{t("document.replace_text")}</p>
        <DropZone onDrop={(transfer) => setFile(transfer.files[0])}>
          <p>{file ? <bdi>{file.name}</bdi> : t("document.replace_drop")}</p>
          <Button onClick={() => input.current?.click()}>{t("document.replace_choose")}</Button>
          <input
            ref={input}
            type="file"
            hidden
            aria-label={t("document.replace_choose")}
            accept={acceptedFiles()}
            onChange={(event) => setFile(event.currentTarget.files?.[0])}
          />
        </DropZone>
        {leftOut && <p class="field-error" role="alert">{t(`add.skipped.${leftOut}`)}</p>}
        {action.isBusy && <Progress label={t("add.state.sending")} done={Math.round(sent * 100)} total={100} />}
        <ErrorMessage error={action.error} />
        <FormButtons>
          <Cancel onClick={onClose} />
          <Button variant="primary" disabled={file === undefined || leftOut !== undefined} isBusy={action.isBusy} onClick={() => void action.run()}>
            {t("document.replace")}
          </Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}
