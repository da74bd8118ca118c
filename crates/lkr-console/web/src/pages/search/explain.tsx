// How a passage was found: the legs, and what each gave.
import { post } from "../../api/client";
import type { Explain, SearchAnswer, SearchResult } from "../../api/types";
import { t } from "../../i18n";
import { useResource } from "../../use_resource";
import { Fact, Facts } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { ErrorMessage, Loading } from "../../ui/feedback";
import { Way, pagesText } from "./result";
import type { SearchBody } from "./state";

interface ExplainProps {
  body: SearchBody;
  result: SearchResult;
  onClose: () => void;
}

export function ExplainDrawer({ body, result, onClose }: ExplainProps) {
  const answer = useResource(
    (signal) => post("/api/v1/search", { body: { ...body, explain: true }, signal }),
    [JSON.stringify(body)],
  );
  const explain = answer.data?.explain;
  const explained = explain?.results.find(({ chunk_id }) => chunk_id === result.chunk_id);
  return (
    <Dialog title={t("search.explain.title")} shape="drawer" onClose={onClose}>
      <div class="stack">
        <div>
          <h3 dir="auto">{result.title}</h3>
          <Way path={result.path} pages={pagesText(result)} />
        </div>
        <p class="muted">{t("search.explain.intro")}</p>
        <ErrorMessage error={answer.error} onRetry={answer.reload} />
        {answer.isLoading && !explain && <Loading />}
        {explain && explained && <Legs explain={explain} explained={explained} />}
        {explained && (
          <Facts>
            <Fact name={t("search.explain.fused")}>{digits(explained.fused)}</Fact>
            <Fact name={t("search.score")}>{digits(result.score)}</Fact>
            <Fact name={t("search.explain.heading")}>{digits(explained.heading)}</Fact>
            <Fact name={t("search.explain.exact")}>{t(explained.exact ? "common.yes" : "common.no")}</Fact>
            {explained.reranked !== null && (
              <Fact name={t("search.explain.reranked")}>{digits(explained.reranked)}</Fact>
            )}
          </Facts>
        )}
        {answer.data && <LayersOf answer={answer.data} docId={result.doc_id} />}
      </div>
    </Dialog>
  );
}

function Legs({ explain, explained }: { explain: Explain; explained: Explain["results"][number] }) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={t("search.explain.title")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("search.explain.leg")}</th>
            <th scope="col" class="number">{t("search.explain.rank")}</th>
            <th scope="col" class="number">{t("search.explain.score")}</th>
            <th scope="col" class="number">{t("search.explain.weight")}</th>
            <th scope="col" class="number">{t("search.explain.candidates")}</th>
            <th scope="col" class="number">{t("search.explain.ms")}</th>
          </tr>
        </thead>
        <tbody>
          {explain.legs.map(({ layer, kind, weight, candidates, ms }) => {
            const leg = `${layer}_${kind}`;
            const rank = explained.ranks[leg] ?? null;
            const score = explained.scores[leg] ?? null;
            return (
              <tr key={leg} class={rank === null ? "unranked" : ""}>
                <th scope="row">{t(`layer.${layer as "l1"}`)}, {t(`leg.${kind as "dense"}`)}</th>
                <td class="number">
                  {rank !== null && <span class="rank-bar" style={{ width: `${Math.max(2, 40 / rank)}px` }} aria-hidden="true" />}
                  {rank ?? "–"}
                </td>
                <td class="number">{score === null ? "–" : digits(score)}</td>
                <td class="number">{digits(weight)}</td>
                <td class="number">{candidates}</td>
                <td class="number">{ms.toFixed(1)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** What the upper layers found in the document. */
function LayersOf({ answer, docId }: { answer: SearchAnswer; docId: string }) {
  const layers = [["l1", answer.layers.l1], ["l2", answer.layers.l2], ["l3", answer.layers.l3]] as const;
  const found = layers.map(([layer, hits]) => ({ layer, hits: hits.filter((hit) => hit.doc_id === docId) }));
  if (found.every(({ hits }) => hits.length === 0)) return null;
  return (
    <section class="stack">
      <h3>{t("search.explain.way")}</h3>
      {found.filter(({ hits }) => hits.length > 0).map(({ layer, hits }) => (
        <div key={layer}>
          <h4>{t(`layer.${layer}`)}</h4>
          <ul class="layer-hits">
            {hits.map(({ id, title, summary, score }) => (
              <li key={id}>
                <span class="spread"><bdi>{title}</bdi><span class="muted">{digits(score)}</span></span>
                {summary !== "" && <small dir="auto">{summary}</small>}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function digits(value: number): string {
  return value.toFixed(Math.abs(value) < 0.1 ? 4 : 3);
}
