// Texts in Markdown as trees, and where their characters are in the source.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { grouped, parse, rangeOf, walk } = await load("pages/document/markdown/parse.ts");
const { markedIn, textOf } = await load("pages/document/markdown/blocks.tsx");
const { safeAddress } = await load("pages/document/markdown/links.ts");

/** The texts that are marked for a range of the source, one for each part. */
function marksOf(source, start, end) {
  const { blocks } = parse(source);
  const found = [];
  for (const block of blocks) {
    for (const node of walk(block)) {
      const units = markedIn(node, source, { start, end });
      if (units) found.push(textOf(node, source).slice(units.start, units.end));
    }
  }
  return found;
}

/** The marks of a part of the source that is written between ⟦ and ⟧. */
function marksBetween(text) {
  const start = text.indexOf("⟦");
  const end = text.indexOf("⟧") - 1;
  return marksOf(text.replace(/[⟦⟧]/g, ""), start, end);
}

test("marks are exact in emphasis, lists, quotations, tables and code", () => {
  const cases = [
    ["a plain ⟦word⟧ here", ["word"]],
    ["with *some ⟦strong* words⟧ here", ["strong", " words"]],
    ["- one\n- ⟦two\n- three⟧\n", ["two", "three"]],
    ["> quoted ⟦over\n> two⟧ lines", ["over\ntwo"]],
    ["1. deep\n\n   > in a list ⟦and a\n   > quotation⟧", ["and a\nquotation"]],
    ["| a | b |\n|---|---|\n| c | ⟦d⟧ |\n| e | f |", ["d"]],
    ["| a | b |\n|---|---|\n| c \\| c | ⟦d⟧ |", ["d"]],
    ["```js\nlet a;\n⟦let b;⟧\n```", ["let b;"]],
    ["    indented\n    ⟦code⟧ here", ["code"]],
    ["`some ⟦code⟧ here`", ["code"]],
    ["an \\*escaped\\* ⟦word\\.⟧ here", ["word."]],
    ["&lt;tag&gt; &amp; ⟦more⟧ &copy; text", ["more"]],
    ["⟦&#x1F600; face⟧ and more", ["😀 face"]],
    ["𝒳 and ⟦字 𝒴⟧ after", ["字 𝒴"]],
    ["a [⟦link⟧](https://example.com) after", ["link"]],
    ["# Heading ⟦text⟧ #", ["text"]],
    ["line one  \n⟦line two⟧", ["line two"]],
    ["<b>⟦raw⟧</b>", ["raw"]],
    ["tabs\r\nand ⟦returns\r\nhere⟧", ["returns\nhere"]],
  ];
  for (const [text, expected] of cases) {
    const found = marksBetween(text).map((mark) => mark.replace(/\r\n/g, "\n"));
    assert.deepEqual(found, expected, JSON.stringify(text));
  }
});

test("a range over everything marks everything", () => {
  const source = "# A\n\ntext *with* `code`\n\n- x\n- y\n\n| p | q |\n|---|---|\n| r | s |\n\n> z\n";
  assert.deepEqual(marksOf(source, 0, source.length), ["A", "text ", "with", " ", "code", "x", "y", "p", "q", "r", "s", "z"]);
  assert.deepEqual(marksOf(source, 3, 4), []);
});

test("front matter is a part of its own, and does not move what follows", () => {
  const source = "---\ntitle: A\n---\n\n# Heading\n";
  const { blocks } = parse(source);
  assert.deepEqual(blocks.map(({ type }) => type), ["code", "heading"]);
  assert.equal(source.slice(rangeOf(blocks[1]).start, rangeOf(blocks[1]).end), "# Heading");
  assert.deepEqual(parse("---\n\ntext\n\n---\n").blocks.map(({ type }) => type), ["thematicBreak", "paragraph", "thematicBreak"]);
  const [paragraph] = parse("\uFEFFtext").blocks;
  assert.deepEqual(rangeOf(paragraph), { start: 1, end: 5 });
});

test("the levels of headings have no gaps", () => {
  const { levels } = parse("### a\n\n# b\n\n### c\n\n### d\n\n###### e\n\n## f\n\n> #### g\n");
  assert.deepEqual([...levels.values()], [2, 2, 3, 3, 4, 3, 4]);
});

test("addresses are opened only if they are absolute and of a known kind", () => {
  for (const address of ["https://example.com/", "http://example.com/a?b#c", "mailto:a@example.com"]) {
    assert.equal(safeAddress(address), address);
  }
  const others = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", " java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//example.com", "/admin", "#a", "", "blob:https://x/y"];
  for (const address of others) assert.equal(safeAddress(address), undefined, address);
});

test("groups have the length that is asked for, and leave no block out", () => {
  const source = Array.from({ length: 100 }, (_, n) => `Paragraph ${n}.`).join("\n\n");
  const { blocks } = parse(source);
  const groups = grouped(blocks, 200);
  assert.equal(groups.flatMap(({ blocks }) => blocks).length, 100);
  assert.ok(groups.every(({ start, end }) => end - start <= 200));
  assert.ok(groups.every(({ start }, at) => at === 0 || start === groups[at - 1].end));
});

test("what could be read in no bounded time is not read at all, and everything else is", () => {
  const none = ["> ".repeat(200) + "x", `${" ".repeat(400)}- x`, "- ".repeat(60) + "x", "1. ".repeat(60) + "x", "[a](b".repeat(4000)];
  for (const text of none) assert.equal(parse(text), undefined, text.slice(0, 20));
  const long = [`+${"-".repeat(200)}+`, "-".repeat(300), "*".repeat(300), `${"> ".repeat(20)}x`, "[a](b)\n\n".repeat(4000)];
  for (const text of long) assert.notEqual(parse(text), undefined, text.slice(0, 20));
  const hard = `${"[a](b".repeat(2900)}\n\n${"*a **b ".repeat(2000)}\n\n${"&#1;&amp\\".repeat(5000)}`;
  const started = performance.now();
  const { blocks } = parse(hard);
  for (const block of blocks) for (const node of walk(block)) markedIn(node, hard, { start: 0, end: hard.length });
  assert.ok(performance.now() - started < 20_000, `${performance.now() - started} ms`);
});
