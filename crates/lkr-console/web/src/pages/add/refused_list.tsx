// The files that the server refused before the page was loaded anew.
import { useRef } from "preact/hooks";
import { t } from "../../i18n";
import { Button } from "../../ui/controls";
import { Badge } from "../../ui/data";
import { acceptedFiles } from "../../ui/drop_zone";
import { Section } from "../../ui/page";
import { enqueue } from "./queue";
import { refusedBefore, type Refused } from "./refused";

export function RefusedList() {
  const files = refusedBefore.value;
  if (files.length === 0) return null;
  return (
    <Section
      title={t("add.refused")}
      actions={<Button variant="quiet" onClick={() => (refusedBefore.value = [])}>{t("add.dismiss_all")}</Button>}
    >
      <p class="muted">{t("add.refused_hint")}</p>
      <ul class="queue">{files.map((file) => <RefusedFile key={`${file.space} ${file.name}`} file={file} />)}</ul>
    </Section>
  );
}

function RefusedFile({ file }: { file: Refused }) {
  const input = useRef<HTMLInputElement>(null);
  const { name, space, isReplacing } = file;
  const send = (chosen: File | undefined) => {
    if (chosen) enqueue([{ file: chosen, path: name }], { space, isReplacing });
  };
  return (
    <li>
      <div class="queue-name"><bdi>{name}</bdi></div>
      <Badge kind="danger">{t("add.state.failed")}</Badge>
      <div class="queue-detail"><p class="field-error">{file.reason}</p></div>
      <div class="queue-actions">
        <Button variant="quiet" icon="retry" title={t("add.refused_choose")} onClick={() => input.current?.click()}>{t("common.retry")}</Button>
        <Button variant="quiet" onClick={() => (refusedBefore.value = refusedBefore.value.filter((other) => other !== file))}>
          {t("add.dismiss")}
        </Button>
        <input
          ref={input}
          type="file"
          hidden
          aria-label={t("add.refused_choose")}
          accept={acceptedFiles()}
          onChange={(event) => send(event.currentTarget.files?.[0])}
        />
      </div>
    </li>
  );
}
