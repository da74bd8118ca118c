import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { MOST_IDS, all, expressionOf, given, parseFilter } = await load("pages/documents/filter.ts");

const NOTHING = parseFilter({});

test("fields of a filter become an expression of the documents that have these values", async () => {
  assert.deepEqual(given(parseFilter({ space: "pier", other: "x" })), { space: "pier" });
  assert.deepEqual(all({ space: "pier", category: "", source: "" }), { field: "space", eq: "pier" });
  assert.deepEqual(await expressionOf({ ...NOTHING, space: "pier", source: "a.md" }), {
    where: { and: [{ field: "space", eq: "pier" }, { field: "source", eq: "a.md" }] },
    isWhole: true,
  });
});

test("the beginning of a title names the documents that are there, and no others", async () => {
  const asked = [];
  let count = 3;
  standIn({
    fetch: async (url) => {
      asked.push(url);
      const items = Array.from({ length: Math.min(100, count) }, (_, n) => ({ doc_id: `${asked.length}-${n}` }));
      return new Response(JSON.stringify({ code: 0, data: { items, next_offset: count > 100 ? "more" : null } }));
    },
  });
  assert.deepEqual(await expressionOf({ ...NOTHING, q: "boat" }), {
    where: { field: "doc_id", in: ["1-0", "1-1", "1-2"] },
    isWhole: true,
  });
  assert.match(asked[0], /q=boat/);
  count = 0;
  assert.deepEqual((await expressionOf({ ...NOTHING, q: "boat" })).where, { field: "doc_id", in: ["none"] });
  count = 10_000;
  const { where, isWhole } = await expressionOf({ ...NOTHING, q: "boat" });
  assert.equal(where.in.length, MOST_IDS);
  assert.equal(isWhole, false);
});
