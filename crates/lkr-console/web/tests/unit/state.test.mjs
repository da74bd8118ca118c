import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

// Where the person is, the day begins an hour before that of UTC.
process.env.TZ = "Europe/Berlin";

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
    conditions: [
      { field: "metadata.port", operator: "gte", value: "7" },
      { field: "metadata.", operator: "eq", value: "being typed" },
    ],
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

test("the body has what is filtered, and the last day whole where the person is", () => {
  assert.deepEqual(searchBody({ ...EMPTY, q: " tides " }), { query: "tides", top_k: 10 });
  assert.deepEqual(searchBody({ ...EMPTY, q: "x", language: "en" }).where, { field: "language", eq: "en" });
  assert.deepEqual(searchBody({ ...EMPTY, q: "x", from: "2026-02-01", to: "2026-02-28" }).where, {
    and: [
      { field: "updated_at", gte: "2026-01-31T23:00:00.000Z" },
      { field: "updated_at", lt: "2026-02-28T23:00:00.000Z" },
    ],
  });
});

test("filters are counted, spaces as one", () => {
  assert.equal(filterCount(EMPTY), 0);
  assert.equal(filterCount({ ...EMPTY, spaces: ["a", "b"], category: "c", source: "  " }), 2);
});

test("conditions become the expressions of the API, and rows that are not complete none", () => {
  const where = (field, operator, value) => searchBody({ ...EMPTY, q: "x", conditions: [{ field, operator, value }] }).where;
  assert.deepEqual(where("metadata.port", "gte", " 7.5 "), { field: "metadata.port", gte: 7.5 });
  assert.deepEqual(where("metadata.name", "lt", "m"), { field: "metadata.name", lt: "m" });
  assert.deepEqual(where("metadata.port", "eq", "7"), { field: "metadata.port", eq: "7" });
  assert.deepEqual(where("source", "ne", "a"), { not: { field: "source", eq: "a" } });
  assert.deepEqual(where("language", "in", "en, zh，"), { field: "language", in: ["en", "zh"] });
  assert.deepEqual(where("metadata.port", "absent", "left over"), { field: "metadata.port", exists: false });
  assert.deepEqual(where("created_at", "gte", "2026-07-01"), { field: "created_at", gte: "2026-06-30T22:00:00.000Z" });
  assert.deepEqual(where("created_at", "gte", "no date"), { field: "created_at", gte: "no date" });
  assert.deepEqual(where("metadata. due date ", "eq", "x"), { field: "metadata.due date", eq: "x" });
  assert.equal(where("metadata.  ", "eq", "x"), undefined);
  assert.equal(where("metadata.", "eq", "x"), undefined);
  assert.equal(where("title", "prefix", "  "), undefined);
  assert.equal(where("title", "in", " , "), undefined);
});

test("what an address has in place of conditions is ignored, and those of the first version are kept", () => {
  for (const where of ["{", "7", "null", '[["title","eq"]]', '[["nothing","eq","x"]]', '[["title","constructor","x"]]', '[["created_at","eq","x"]]']) {
    assert.deepEqual(parseState({ where }).conditions, [], where);
  }
  assert.deepEqual(parseState({ metadata: "port=7\nnothing\n=x" }).conditions, [
    { field: "metadata.port", operator: "eq", value: "7" },
  ]);
});

test("an operator that another field lacks becomes one that it has", async () => {
  const { withField } = await load("pages/search/conditions.ts");
  const condition = { field: "title", operator: "prefix", value: "a" };
  assert.deepEqual(withField(condition, "source"), { ...condition, field: "source" });
  assert.deepEqual(withField(condition, "created_at"), { field: "created_at", operator: "gte", value: "" });
});
