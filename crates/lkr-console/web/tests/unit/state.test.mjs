import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { EMPTY, MOST_RESULTS, filterCount, parseState, searchBody, stateHref } = await load("pages/search/state.ts");

const queryOf = (href) => Object.fromEntries(new URL(href, "http://x").searchParams);

test("an address gives the state that it was made of", () => {
  const state = {
    ...EMPTY,
    q: "tides & “ebb”",
    spaces: ["harbour", "default"],
    category: "Science",
    from: "2026-01-01",
    to: "2026-02-28",
    isGrouped: true,
    isFlat: true,
    isSummarized: true,
    count: 30,
  };
  assert.deepEqual(parseState(queryOf(stateHref(state))), state);
  assert.equal(stateHref(EMPTY), "/");
});

test("a number of results that nobody offers is brought into its bounds", () => {
  assert.equal(parseState({ n: "100000" }).count, MOST_RESULTS);
  for (const n of ["-1", "0", "1.5", "x", ""]) assert.equal(parseState({ n }).count, EMPTY.count, n);
});

test("the body has what is filtered, and the last day whole", () => {
  assert.deepEqual(searchBody({ ...EMPTY, q: " tides " }), { query: "tides", top_k: 10 });
  assert.deepEqual(searchBody({ ...EMPTY, q: "x", language: "en" }).where, { field: "language", eq: "en" });
  assert.deepEqual(searchBody({ ...EMPTY, q: "x", from: "2026-02-01", to: "2026-02-28" }).where, {
    and: [
      { field: "updated_at", gte: "2026-02-01" },
      { field: "updated_at", lt: "2026-03-01" },
    ],
  });
});

test("filters are counted, spaces as one", () => {
  assert.equal(filterCount(EMPTY), 0);
  assert.equal(filterCount({ ...EMPTY, spaces: ["a", "b"], category: "c", source: "  " }), 2);
});
