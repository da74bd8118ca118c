import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { branchesOf } = await load("pages/administration/taxonomy/tree.ts");
const { loadSettings, sentTag } = await load("pages/administration/settings/stored.ts");

const category = (id, parent = null) => ({ id, name: id, description: "", keywords: [], parent });

/** The ids of a tree, those below another one in brackets behind it. */
function shown(items) {
  return items.map(({ category: { id }, children }) => id + (children.length > 0 ? `(${shown(children)})` : "")).join(" ");
}

test("categories are shown below their parents, wherever the file has these", () => {
  const categories = [category("b1", "b"), category("a"), category("b"), category("a1", "a"), category("b2", "b")];
  assert.equal(shown(branchesOf(categories)), "a(a1) b(b1 b2)");
  assert.equal(shown(branchesOf([])), "");
});

test("categories below the last level that is shown stand at that level", () => {
  const chain = Array.from({ length: 8 }, (_, n) => category(`${n}`, n === 0 ? null : `${n - 1}`));
  const categories = [...chain, category("6b", "5"), category("5b", "4")];
  assert.equal(shown(branchesOf(categories)), "0(1(2(3(4(5 6 7 6b 5b)))))");
});

test("the longest chain of categories that a file may have is shown", () => {
  const chain = Array.from({ length: 500 }, (_, n) => category(`${n}`, n === 0 ? null : `${n - 1}`));
  assert.equal(shown(branchesOf(chain)).match(/\d+/g).length, 500);
});

test("the tag of the settings is the server's own, whatever a proxy that compresses made of it", async () => {
  for (const received of ['"21-e9e40b4e"', 'W/"21-e9e40b4e"', '"21-e9e40b4e-gzip"', 'W/"21-e9e40b4e-zstd"']) {
    assert.equal(sentTag(received), '"21-e9e40b4e"', received);
    standIn({ fetch: async () => new Response('{"code": 0, "data": {}}', { headers: { ETag: received } }) });
    assert.equal((await loadSettings()).etag, '"21-e9e40b4e"', received);
  }
});
