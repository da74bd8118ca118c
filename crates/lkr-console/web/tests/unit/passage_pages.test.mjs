import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { pagesOf } = await load("pages/document/passage_pages.tsx");

/** The pages that are found where the passage is on some pages, and how many were asked for. */
async function find(opened, within, on) {
  let asked = 0;
  const found = await pagesOf(opened, within, async (page) => {
    asked++;
    return on.includes(page);
  });
  return { found, asked };
}

test("pages are found around the page that was opened, with few requests", async () => {
  const within = { start: 1, end: 100 };
  assert.deepEqual(await find(3, within, [3, 4]), { found: { start: 3, end: 4 }, asked: 4 });
  assert.deepEqual((await find(4, within, [3, 4])).found, { start: 3, end: 4 });
  assert.deepEqual((await find(1, within, [3, 4])).found, { start: 3, end: 4 });
  assert.deepEqual((await find(6, within, [3, 4])).found, { start: 3, end: 4 });
  assert.deepEqual(await find(50, within, []), { found: undefined, asked: 17 });
});

test("where a section has one page, nothing is asked for", async () => {
  assert.deepEqual(await find(9, { start: 7, end: 7 }, []), { found: { start: 7, end: 7 }, asked: 0 });
});
