// How good searches are, by queries whose answers are known.
import { useId, useRef, useState } from "preact/hooks";
import { post } from "../../api/client";
import { isUnfinished, useLatestTask } from "../../api/follow_task";
import { t } from "../../i18n";
import { isolated } from "../../text";
import { useAction, useResource } from "../../use_resource";
import { Button } from "../../ui/controls";
import { Foreign } from "../../ui/data";
import { ErrorMessage, Notice } from "../../ui/feedback";
import { Page, Section } from "../../ui/page";
import { evaluated, Figures } from "./evaluation/figures";
import { type GoldSet, readGold, SAMPLE } from "./evaluation/gold";
import { PerQuery } from "./evaluation/per_query";
import { checkDocuments } from "./evaluation/unknown";
import { FollowedTask } from "./followed_task";

/** A file that was chosen: the gold set in it, or what is wrong with it. */
interface Chosen {
  name: string;
  gold?: GoldSet;
  faults: string[];
}

export function EvaluationPage() {
  const [chosen, setChosen] = useState<Chosen>();
  const latest = useLatestTask("evaluate");
  const start = useAction(async () => {
    if (!chosen?.gold) return;
    await post("/api/v1/eval", { body: chosen.gold });
    latest.follow();
  });
  const result = latest.data && evaluated(latest.data);
  return (
    <Page title={t("nav.evaluation")}>
      <p class="muted">{t("evaluation.intro")}</p>
      <Section title={t("evaluation.gold")}>
        <GoldChoice chosen={chosen} onChoose={setChosen} />
        <ErrorMessage error={start.error} />
        <div>
          <Button
            variant="primary"
            icon="flask"
            disabled={!chosen?.gold}
            isBusy={start.isBusy || isUnfinished(latest.data)}
            onClick={() => void start.run()}
          >
            {t("evaluation.start")}
          </Button>
        </div>
      </Section>
      <ErrorMessage error={latest.error} onRetry={latest.reload} />
      {latest.data && (
        <Section title={t("evaluation.result")}>
          <FollowedTask title={t("evaluation.last")} task={latest.data}>
            {result && <Figures result={result} />}
          </FollowedTask>
        </Section>
      )}
      {chosen?.gold && <PerQuery key={chosen.name} gold={chosen.gold} />}
    </Page>
  );
}

function GoldChoice({ chosen, onChoose }: { chosen: Chosen | undefined; onChoose: (chosen: Chosen) => void }) {
  const id = useId();
  const latest = useRef<File>(undefined);
  const choose = async (file: File | undefined) => {
    if (file === undefined) return;
    latest.current = file;
    const checked = readGold(await file.text());
    // A file that was chosen meanwhile counts.
    if (latest.current !== file) return;
    onChoose({ name: file.name, faults: [], ...checked });
  };
  return (
    <div class="card stack">
      <div class="field">
        <label for={id}>{t("evaluation.file")}</label>
        <input
          id={id}
          type="file"
          accept="application/json,.json"
          aria-describedby={`${id}-hint`}
          onChange={(event) => void choose(event.currentTarget.files?.[0])}
        />
        <p class="hint" id={`${id}-hint`}>{t("evaluation.file_hint")}</p>
      </div>
      <div role="status">{chosen && <ChosenFile chosen={chosen} />}</div>
      <details>
        <summary>{t("evaluation.sample")}</summary>
        <pre tabIndex={0}>{SAMPLE}</pre>
      </details>
    </div>
  );
}

function ChosenFile({ chosen }: { chosen: Chosen }) {
  if (chosen.gold) {
    const judgements = chosen.gold.queries.reduce((sum, { relevant }) => sum + relevant.length, 0);
    return (
      <div class="stack">
        <Notice kind="ok">
          <Foreign>{chosen.name}</Foreign>: {t("gold.valid", { n: chosen.gold.queries.length })}{" "}
          {t("gold.judgements", { n: judgements })}
        </Notice>
        <UnknownDocuments gold={chosen.gold} />
      </div>
    );
  }
  return (
    <Notice kind="warning">
      <p>{t("gold.invalid", { name: isolated(chosen.name) })}</p>
      <ul class="points">{chosen.faults.map((fault) => <li key={fault}><Foreign>{fault}</Foreign></li>)}</ul>
    </Notice>
  );
}

/** How many of the unknown documents are named. */
const NAMED = 3;

/** Tells of documents that are not there before the set is run: it would measure them as not found. */
function UnknownDocuments({ gold }: { gold: GoldSet }) {
  const checked = useResource((signal) => checkDocuments(gold, signal), [gold]);
  const { data, error, isLoading } = checked;
  if (isLoading) return <p class="muted">{t("gold.checking")}</p>;
  if (error || data === undefined) return <ErrorMessage error={error} onRetry={checked.reload} />;
  const { total, unknown, unanswerable, isWhole } = data;
  return (
    <>
      {unknown.length > 0 && (
        <Notice kind="warning">
          <p>{t("gold.unknown", { n: unknown.length, total })}</p>
          {unanswerable > 0 && <p>{t("gold.unanswerable", { n: unanswerable })}</p>}
          <ul class="points">
            {unknown.slice(0, NAMED).map((id) => <li key={id}><code>{id}</code></li>)}
            {unknown.length > NAMED && <li>{t("gold.more_unknown", { n: unknown.length - NAMED })}</li>}
          </ul>
        </Notice>
      )}
      {!isWhole && <p class="muted">{t("gold.checked_part")}</p>}
    </>
  );
}
