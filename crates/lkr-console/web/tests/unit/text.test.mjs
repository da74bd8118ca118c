import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { CodePoints, escapeMarkdown, excerpt, pieces } = await load("text.ts");

test("pieces count code points, merge what overlaps and ignore what lies outside", () => {
  const cut = pieces("a𝒳c字e", [{ start: 3, end: 9 }, { start: 1, end: 2 }, { start: 1, end: 3 }, { start: -4, end: 0 }]);
  assert.deepEqual(cut, [
    { text: "a", isMarked: false },
    { text: "𝒳c字e", isMarked: true },
  ]);
  assert.deepEqual(pieces("", [{ start: 0, end: 3 }]), []);
});

test("an excerpt has the marks, at their places, cut between words", () => {
  const text = `${"word ".repeat(100)}needle ${"word ".repeat(100)}`;
  const start = text.indexOf("needle");
  const found = excerpt(text, [{ start, end: start + 6 }], 80);
  assert.ok(found.isCutBefore && found.isCutAfter);
  assert.ok(Array.from(found.text).length <= 80 + 16, `${found.text.length}`);
  const [mark] = found.marked;
  assert.equal(found.text.slice(mark.start, mark.end), "needle");
  assert.match(found.text, /^(word|needle)/);
});

test("a short text is no excerpt", () => {
  assert.deepEqual(excerpt("short", [{ start: 0, end: 5 }], 80), {
    text: "short",
    marked: [{ start: 0, end: 5 }],
    isCutBefore: false,
    isCutAfter: false,
  });
});

test("code points are found beyond a step of the index, and lone surrogates count as one", () => {
  const text = `${"𝒳".repeat(CodePoints.STEP + 3)}ab\uD835`;
  const points = new CodePoints(text);
  assert.equal(points.length, CodePoints.STEP + 6);
  assert.equal(points.slice(CodePoints.STEP + 3, CodePoints.STEP + 5), "ab");
  assert.equal(points.slice(CodePoints.STEP + 5, CodePoints.STEP + 99), "\uD835");
  assert.equal(points.slice(0, 1), "𝒳");
});

test("Markdown in a citation stays text", () => {
  assert.equal(escapeMarkdown("a*b_[c](d)\n`e`"), "a\\*b\\_\\[c\\](d) \\`e\\`");
});
