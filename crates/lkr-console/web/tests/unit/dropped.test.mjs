import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { MOST_FILES, chosenFiles, droppedFiles } = await load("pages/add/dropped.ts");

const file = (name) => ({ name, isFile: true, file: (take) => take(new File(["x"], name)) });
const broken = (name) => ({ name, isFile: true, file: (_, refuse) => refuse(new DOMException("gone", "NotFoundError")) });

function folder(name, ...entries) {
  const parts = [entries, []];
  return { name, isFile: false, createReader: () => ({ readEntries: (take) => take(parts.shift() ?? []) }) };
}

const closed = (name) => ({
  name,
  isFile: false,
  createReader: () => ({ readEntries: (_, refuse) => refuse(new DOMException("forbidden", "NotReadableError")) }),
});

const drop = (...entries) => droppedFiles({ items: entries.map((entry) => ({ webkitGetAsEntry: () => entry })) });

test("what cannot be opened in a dropped folder is told, and the rest is taken", async () => {
  const { contents, isCut } = await drop(folder("docs", file("a.md"), broken("link.md"), closed("private"), file(".hidden"), file("b.md")));
  assert.deepEqual(
    contents.map(({ path, unreadable = false }) => [path, unreadable]),
    [["docs/a.md", false], ["docs/link.md", true], ["docs/private", true], ["docs/b.md", false]],
  );
  assert.equal(isCut, false);
});

test("more files than are taken at once are told", async () => {
  const many = Array.from({ length: MOST_FILES + 5 }, (_, at) => file(`${at}.md`));
  const dropped = await drop(folder("docs", ...many));
  assert.deepEqual([dropped.contents.length, dropped.isCut], [MOST_FILES, true]);
  const chosen = chosenFiles(many.map(({ name }) => ({ name })));
  assert.deepEqual([chosen.contents.length, chosen.isCut], [MOST_FILES, true]);
  assert.equal(chosenFiles(many.slice(5).map(({ name }) => ({ name }))).isCut, false);
});
