// The search, as one types.
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api/client";
import type { SearchAnswer, SearchResult } from "../api/types";
import { t } from "../i18n";
import { user } from "../session";
import { useResource } from "../use_resource";
import { Button, submitting } from "../ui/controls";
import { Empty, ErrorMessage, Loading, Notice } from "../ui/feedback";
import { Icon } from "../ui/icon";
import { Page } from "../ui/page";
import { ExplainDrawer } from "./search/explain";
import { Filters } from "./search/filters";
import { Result } from "./search/result";
import { FIRST_COUNT, MOST_RESULTS, filterCount, parseState, searchBody, stateHref, type SearchState } from "./search/state";
import { SummaryOfResults } from "./search/summary";

/** How long a person must not have typed before the search begins. */
const TYPING_MS = 140;

export function SearchPage() {
  const { query, route } = useLocation();
  const state = parseState(query);
  const [typed, setTyped] = useState(state.q);
  const [isFiltering, setFiltering] = useState(filterCount(state) > 0);
  const [explained, setExplained] = useState<SearchResult>();
  const timer = useRef(0);
  const box = useRef<HTMLInputElement>(null);
  const go = (change: Partial<SearchState>, isReplacing: boolean) => {
    clearTimeout(timer.current);
    route(stateHref({ ...state, q: typed, count: FIRST_COUNT, ...change }), isReplacing);
  };
  // The address may change without the box: by the browser's back button, or by a link.
  useEffect(() => setTyped(state.q), [state.q]);
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (q: string) => {
    setTyped(q);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(
      () => route(stateHref({ ...state, q, count: FIRST_COUNT, isSummarized: false }), true),
      TYPING_MS,
    );
  };
  const body = searchBody(state);
  const hasQuery = body.query !== "";
  const key = JSON.stringify(body);
  const answer = useResource<Answered | undefined>(
    async (signal) => (hasQuery ? { key, ...(await post("/api/v1/search", { body, signal })) } : undefined),
    [key],
  );
  const filters = filterCount(state);
  return (
    <Page title={hasQuery ? state.q : t("search.title")} isTitleHidden>
      <form
        role="search"
        class={hasQuery ? "search-form" : "search-form first"}
        onSubmit={submitting(() => go({}, false))}
      >
        <div class="search-box">
          <Icon name="search" />
          <input
            ref={box}
            type="search"
            aria-label={t("search.label")}
            placeholder={t("search.placeholder")}
            value={typed}
            maxLength={2000}
            autocomplete="off"
            spellcheck={false}
            enterkeyhint="search"
            onInput={(event) => type(event.currentTarget.value)}
          />
          <Button
            variant="quiet"
            icon="filter"
            aria-expanded={isFiltering}
            aria-controls="filters"
            onClick={() => setFiltering(!isFiltering)}
          >
            {filters > 0 ? t("search.filters_active", { n: filters }) : t("search.filters")}
          </Button>
          <Button variant="primary" type="submit">{t("search.title")}</Button>
        </div>
        {isFiltering && <Filters state={state} onChange={(change) => go(change, true)} />}
      </form>
      <ErrorMessage error={answer.error} onRetry={answer.reload} />
      {hasQuery ? (
        <Answer
          answer={answer.error ? undefined : answer.data}
          isLoading={answer.isLoading}
          isOld={answer.data?.key !== key}
          state={state}
          onChange={(change) => go({ q: state.q, ...change }, false)}
          onExplain={setExplained}
        />
      ) : (
        <Start />
      )}
      {explained && <ExplainDrawer body={body} result={explained} onClose={() => setExplained(undefined)} />}
    </Page>
  );
}

/** An answer, and the request that it answers. */
type Answered = SearchAnswer & { key: string };

interface AnswerProps {
  answer: SearchAnswer | undefined;
  isLoading: boolean;
  /** Whether it answers another request than the one that is on its way. */
  isOld: boolean;
  state: SearchState;
  onChange: (change: Partial<SearchState>) => void;
  onExplain: (result: SearchResult) => void;
}

function Answer({ answer, isLoading, isOld, state, onChange, onExplain }: AnswerProps) {
  if (answer === undefined) return isLoading ? <Loading rows={6} /> : null;
  const { results, warnings, took_ms } = answer;
  const mayGrow = results.length === state.count && state.count < MOST_RESULTS;
  return (
    <div class={isOld ? "stack answer old" : "stack answer"} aria-busy={isLoading}>
      <div class="spread">
        <p class="muted" role="status">
          {isOld ? t("search.searching") : results.length > 0 && t("search.results", { n: results.length, ms: took_ms })}
        </p>
        {results.length > 0 && !state.isSummarized && (
          <Button icon="page" onClick={() => onChange({ isSummarized: true })}>{t("search.summarize")}</Button>
        )}
      </div>
      {warnings.map((warning) => <Notice key={warning} kind="warning">{warning}</Notice>)}
      {state.isSummarized && results.length > 0 && <SummaryOfResults body={searchBody(state)} results={results} />}
      {results.length === 0 ? (
        <Empty icon="search" title={t("search.no_results")}>
          <p>{t("search.no_results_hint")}</p>
        </Empty>
      ) : (
        <ol class="results">
          {results.map((result, at) => (
            <Result key={result.chunk_id} result={result} marker={at + 1} onExplain={() => onExplain(result)} />
          ))}
        </ol>
      )}
      {mayGrow && (
        <Button onClick={() => onChange({ count: Math.min(MOST_RESULTS, state.count + FIRST_COUNT) })}>{t("search.more")}</Button>
      )}
    </div>
  );
}

/** Before the first search: what to do where nothing is there yet. */
function Start() {
  const stats = useResource((signal) => get("/api/v1/knowledge/stats", { signal }), []);
  if (stats.data?.documents_total === 0) {
    return (
      <Empty icon="documents" title={t("empty.title")}>
        <p>{t("empty.text")}</p>
        {user.value === null ? <a href="/login">{t("empty.sign_in")}</a> : <a class="button primary" href="/add">{t("empty.add")}</a>}
      </Empty>
    );
  }
  return <p class="search-hint muted">{t("search.hint")}</p>;
}
