// Changing a document: its properties, its content, or its end.
import { useRef, useState } from "preact/hooks";
import { patch, urlOf } from "../../api/client";
import { sendFile } from "../../api/upload";
import type { Document } from "../../api/types";
import { t } from "../../i18n";
import { knownCategories, knownSpaces, useShared } from "../../known";
import { useAction } from "../../use_resource";
import { Button, Cancel, FormButtons, Select, TextArea, TextField } from "../../ui/controls";
import { Progress } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { DropZone, acceptedFiles } from "../../ui/drop_zone";
import { ErrorMessage } from "../../ui/feedback";
import { FormDialog } from "../../ui/form_dialog";
import { spaceChoices } from "../../ui/space";

/** Metadata that the server writes itself. */
const RESERVED = ["raw_file_path", "original_filename", "original_size_bytes"];

interface EditProps {
  document: Document;
  onDone: () => void;
  onClose: () => void;
}

export function EditDialog({ document, onDone, onClose }: EditProps) {
  const own = Object.entries(document.metadata).filter(([key]) => !RESERVED.includes(key));
  const [title, setTitle] = useState(document.title);
  const [source, setSource] = useState(document.source);
  const [category, setCategory] = useState(document.category);
  const [space, setSpace] = useState(document.space);
  const [metadata, setMetadata] = useState(own.map(([key, value]) => `${key}=${value}`).join("\n"));
  const [fault, setFault] = useState<string>();
  const spaces = useShared(knownSpaces);
  const categories = useShared(knownCategories);
  const parsed = parseMetadata(metadata);
  const changed = {
    ...(title !== document.title && { title }),
    ...(source !== document.source && { source }),
    ...(category !== document.category && { category }),
    ...(space !== document.space && { space }),
    ...("metadata" in parsed && !isSame(parsed.metadata, Object.fromEntries(own)) && { metadata: parsed.metadata }),
  };
  const isChanged = "fault" in parsed || Object.keys(changed).length > 0;
  const save = async (): Promise<void | false> => {
    setFault("fault" in parsed ? t("document.metadata_fault", { line: parsed.fault }) : undefined);
    if ("fault" in parsed) return false;
    const path = { doc_id: document.doc_id };
    if (isChanged) await patch("/api/v1/documents/{doc_id}", { path, body: changed });
    onDone();
    return undefined;
  };
  const names = categories.data?.map(({ name }) => name) ?? [];
  const all = names.includes(document.category) || document.category === "" ? names : [document.category, ...names];
  return (
    <FormDialog title={t("document.edit")} submit={t("common.save")} isChanged={isChanged} onSubmit={save} onClose={onClose}>
      <TextField label={t("common.title")} value={title} maxLength={4096} onInput={setTitle} />
      <TextField label={t("document.source")} value={source} maxLength={4096} onInput={setSource} />
      <Select
        label={t("document.category")}
        value={category}
        choices={[{ value: "", label: t("category.none") }, ...all.map((name) => ({ value: name, label: name }))]}
        onChange={setCategory}
      />
      <Select
        label={t("document.space")}
        value={space}
        choices={spaceChoices(spaces.data ?? [{ space, title: "" }])}
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
    </FormDialog>
  );
}

function parseMetadata(text: string): { metadata: Record<string, string> } | { fault: string } {
  const metadata: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(0, at)).trim();
    if (at < 0 || key === "") return { fault: line };
    metadata[key] = line.slice(at + 1).trim();
  }
  return { metadata };
}

function isSame(a: Record<string, string>, b: Record<string, string>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
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
  const action = useAction(async () => {
    if (file === undefined) return;
    const form = new FormData();
    form.set("title", title);
    form.set("source", source);
    form.set("file", file, file.name);
    const { task_id } = await sendFile({
      method: "PUT",
      url: urlOf("/api/v1/documents/{doc_id}/file", { path: { doc_id: docId } }),
      form,
      signal: new AbortController().signal,
      onProgress: setSent,
    });
    onDone(task_id);
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
        {action.isBusy && <Progress label={t("add.state.sending")} done={Math.round(sent * 100)} total={100} />}
        <ErrorMessage error={action.error} />
        <FormButtons>
          <Cancel onClick={onClose} />
          <Button variant="primary" disabled={file === undefined} isBusy={action.isBusy} onClick={() => void action.run()}>
            {t("document.replace")}
          </Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}
