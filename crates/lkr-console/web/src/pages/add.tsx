// Adding documents: files, folders, a text.
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { bytes, duration } from "../i18n/format";
import type { Space } from "../api/types";
import { knownSpaces, useShared } from "../known";
import { options } from "../options";
import { documentHref, taskHref } from "../routes";
import { mayAdd } from "../rights";
import { isolated } from "../text";
import { Button, Checkbox, FormButtons, Select, TextArea, TextField, submitting } from "../ui/controls";
import { Badge, Progress, type BadgeKind } from "../ui/data";
import { DropZone, acceptedFiles } from "../ui/drop_zone";
import { ErrorMessage, Notice, errorText } from "../ui/feedback";
import { Icon } from "../ui/icon";
import { useUnsaved } from "../ui/leaving";
import { Page, Section } from "../ui/page";
import { spaceChoices } from "../ui/space";
import { MOST_FILES, chosenFiles, droppedFiles, type Taken } from "./add/dropped";
import { added, again, clearEnded, dismiss, enqueue, isSending, progress, stop, timeLeft, type Added, type Content, type Target } from "./add/queue";
import { RefusedList } from "./add/refused_list";
import { TaskProgress } from "./task_progress";

export function AddPage() {
  const spaces = useShared(knownSpaces);
  const { query } = useLocation();
  const [space, setSpace] = useState(query["space"] ?? "default");
  const [isReplacing, setReplacing] = useState(true);
  const writable = spaces.data?.filter(mayAdd);
  const isOffered = writable?.some((one) => one.space === space);
  // Until the spaces are known, what is added goes where the address says.
  const chosen = writable === undefined || isOffered ? space : (writable[0]?.space ?? "default");
  const choices = writable === undefined ? [{ value: space, label: space }] : spaceChoices(writable);
  const chosenSpace = writable?.find(({ space }) => space === chosen);
  const target: Target = { space: chosen, isReplacing };
  return (
    <Page title={t("add.title")}>
      <ErrorMessage error={spaces.error} onRetry={spaces.reload} />
      {writable?.length === 0 && <Notice kind="warning">{t("add.nowhere")}</Notice>}
      {isOffered === false && query["space"] === space && choices.length > 0 && (
        <Notice kind="warning">{t("add.not_there", { space: isolated(space) })}</Notice>
      )}
      <div class="fields">
        <Select label={t("add.space")} hint={readers(chosenSpace)} value={chosen} choices={choices} onChange={setSpace} />
        <Checkbox label={t("add.replace")} hint={t("add.replace_hint")} checked={isReplacing} onChange={setReplacing} />
      </div>
      <Drop onFiles={(files) => enqueue(files, target)} />
      <Paste onText={(content) => enqueue([content], target)} />
      <Queue />
      <RefusedList />
    </Page>
  );
}

/** Who will be able to read what is added. */
function readers(space: Space | undefined): string {
  if (space === undefined) return "";
  if (space.read === "members") return t("add.readers.members");
  return t(options.login_for_reads ? "add.readers.accounts" : "add.readers.everyone");
}

function Drop({ onFiles }: { onFiles: (files: Content[]) => void }) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const [isCut, setCut] = useState(false);
  const take = ({ contents, isCut }: Taken) => {
    setCut(isCut);
    onFiles(contents);
  };
  const choose = (input: HTMLInputElement) => {
    if (input.files) take(chosenFiles(input.files));
    input.value = "";
  };
  return (
    <DropZone onDrop={(transfer) => void droppedFiles(transfer).then(take)}>
      <Icon name="upload" size={28} />
      <p>{t("add.drop")}</p>
      <div class="row">
        <Button variant="primary" onClick={() => files.current?.click()}>{t("add.choose_files")}</Button>
        <Button icon="space" onClick={() => folder.current?.click()}>{t("add.choose_folder")}</Button>
      </div>
      <p class="hint">
        {t("add.formats", { formats: options.upload_extensions.join(", "), size: bytes(options.upload_max_bytes) })}
      </p>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label={t("add.choose_files")}
        accept={acceptedFiles()}
        onChange={(event) => choose(event.currentTarget)}
      />
      <input
        ref={folder}
        type="file"
        multiple
        hidden
        aria-label={t("add.choose_folder")}
        {...{ webkitdirectory: true }}
        onChange={(event) => choose(event.currentTarget)}
      />
      {isCut && <Notice kind="warning">{t("add.cut", { n: MOST_FILES })}</Notice>}
    </DropZone>
  );
}

function Paste({ onText }: { onText: (content: { title: string; text: string }) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [title, setTitle] = useState("");
  const [text, setText] = useState("");
  useUnsaved(isOpen && text.trim() !== "");
  if (!isOpen) return <div><Button icon="edit" onClick={() => setOpen(true)}>{t("add.paste")}</Button></div>;
  const submit = () => {
    const name = title.trim() || Array.from(text.trim().split("\n")[0] ?? "").slice(0, 80).join("");
    onText({ title: name, text });
    setTitle("");
    setText("");
    setOpen(false);
  };
  return (
    <Section title={t("add.paste")}>
      <form
        class="card stack"
        onSubmit={submitting(submit)}
      >
        <TextField label={t("common.title")} hint={t("add.paste_title_hint")} maxLength={4096} value={title} onInput={setTitle} />
        <TextArea label={t("add.paste_text")} rows={10} required value={text} onInput={setText} />
        <FormButtons>
          <Button onClick={() => setOpen(false)}>{t("common.cancel")}</Button>
          <Button variant="primary" type="submit" disabled={text.trim() === ""}>{t("common.add")}</Button>
        </FormButtons>
      </form>
    </Section>
  );
}

/** The most rows that are shown at once: a folder may have thousands of files. */
const SHOWN = 100;

/** What is being added: what needs attention first, then what is under way, then the rest. */
function Queue() {
  const items = added.value;
  const [all, setAll] = useState(false);
  if (items.length === 0) return null;
  const order = { failed: 0, duplicate: 1, working: 2, sending: 3, waiting: 4, skipped: 5, done: 6 };
  const sorted = [...items].sort((a, b) => order[a.state] - order[b.state] || a.id - b.id);
  const shown = all ? sorted : sorted.slice(0, SHOWN);
  const { total, ended, failed } = progress.value;
  return (
    <Section
      title={t("add.queue")}
      actions={
        <span class="row">
          {isSending.value && <Button variant="quiet" icon="stop" onClick={stop}>{t("add.stop")}</Button>}
          {ended > 0 && <Button variant="quiet" onClick={clearEnded}>{t("add.clear")}</Button>}
        </span>
      }
    >
      {/* Files that are left out have no progress. */}
      <div class="stack" aria-live="polite">
        {total > 0 && <Progress label={t("add.queue")} done={ended} total={total} />}
        {total > 0 && (
          <p class="muted">
            {ended < total ? <TimeLeft /> : t("add.all_done", { n: total - failed })}
            {failed > 0 && ` ${t("add.failed_count", { n: failed })}`}
          </p>
        )}
      </div>
      <ul class="queue">{shown.map((item) => <QueueItem key={item.id} item={item} />)}</ul>
      {sorted.length > shown.length && (
        <Button onClick={() => setAll(true)}>{t("add.show_all", { n: sorted.length - shown.length })}</Button>
      )}
    </Section>
  );
}

function TimeLeft() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = timeLeft(now);
  return <>{left === undefined ? t("add.estimating") : t("add.left", { time: duration(Math.max(1000, left)) })}</>;
}

const BADGES: Record<Added["state"], BadgeKind> = {
  waiting: "neutral",
  sending: "accent",
  working: "accent",
  done: "ok",
  duplicate: "warning",
  failed: "danger",
  skipped: "neutral",
};

function QueueItem({ item }: { item: Added }) {
  const { task } = item;
  const docId = task?.doc_id;
  const duplicate = (task?.result as { duplicate_of?: { doc_id: string; distance: number } | null } | undefined)?.duplicate_of;
  return (
    <li>
      <div class="queue-name">
        {item.state === "done" && docId ? <a href={documentHref(docId)}><bdi>{item.name}</bdi></a> : <bdi>{item.name}</bdi>}
        <small>{bytes(item.bytes)}</small>
      </div>
      <Badge kind={BADGES[item.state]}>{t(`add.state.${item.state}`)}</Badge>
      <div class="queue-detail">
        {item.state === "sending" && <Progress label={t("add.state.sending")} done={Math.round(item.sent * 100)} total={100} />}
        {item.state === "working" && task && <TaskProgress task={task} />}
        {item.state === "failed" && <p class="field-error">{item.error ? errorText(item.error) : task?.error?.message}</p>}
        {item.state === "skipped" && item.skipped && <p class="muted">{t(`add.skipped.${item.skipped}`)}</p>}
        {duplicate && (
          <p>
            {t(duplicate.distance === 0 ? "add.duplicate" : "add.near_duplicate", { n: duplicate.distance })}{" "}
            <a href={documentHref(duplicate.doc_id)}>{t("add.duplicate_link")}</a>
          </p>
        )}
        {(task?.result as { warnings?: string[] } | undefined)?.warnings?.map((warning) => (
          <p key={warning} class="muted">{warning}</p>
        ))}
      </div>
      <div class="queue-actions">
        {(item.state === "failed" || item.skipped === "stopped") && <Button variant="quiet" icon="retry" onClick={() => void again(item)}>{t("common.retry")}</Button>}
        {item.state === "duplicate" && <Button variant="quiet" onClick={() => void again(item, true)}>{t("add.anyway")}</Button>}
        {(item.state === "failed" || item.state === "skipped") && (
          <Button variant="quiet" onClick={() => dismiss(item.id)}>{t("add.dismiss")}</Button>
        )}
        {item.taskId && <a href={taskHref(item.taskId)}>{t("add.task")}</a>}
      </div>
    </li>
  );
}

