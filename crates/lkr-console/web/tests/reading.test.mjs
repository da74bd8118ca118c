// Reading a document: a text in Markdown with its format.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { BASE, WIDTHS, api, checkAccessibility, checkWidth, ended, settled, shoot, upload, visit } from "./browser.mjs";
import { pdf } from "./pdf.mjs";

const GUIDE = `---
author: The harbour master
---

# Guide to the harbour 𝒳

Ships **enter** by the *north* channel. See the [tide table](https://tides.example/today?port=7) and
<https://harbour.example/>. Write to [the master](mailto:master@harbour.example), not [here](javascript:window.hacked=1)
or [there](data:text/html,x) or [inside](./inside.md).

### Lights

1. Green is starboard.
2. Red is port:
   - blinking: wait
   - steady: go

> A quotation of the
> second line.

| Light | Seconds | |
|:------|--------:|-|
| Red   | 4       | x |
| Green \\| white | 8 | y |

\`\`\`sh
harbour --open "north" | tee log
\`\`\`

![a chart](https://charts.example/north.png)

<img src=x onerror="window.hacked=1">

The last &amp; longest *line of
two* lines.
`;

let docId;

before(async () => {
  const task = await ended((await upload("guide.md", GUIDE)).task_id);
  assert.equal(task.status, "done", JSON.stringify(task.error));
  docId = task.doc_id;
});

/** The address of the document at a part of its text, in code points. */
async function at(part) {
  const { text } = await api("GET", `/documents/${docId}/text`);
  const unit = text.indexOf(part);
  assert.ok(unit >= 0, part);
  const start = Array.from(text.slice(0, unit)).length;
  return `${BASE}/documents/${docId}?at=${start}-${start + Array.from(part).length}`;
}

test("Markdown is shown with its format, and opens nothing by itself", async (t) => {
  const page = await visit(t);
  await page.goto(`${BASE}/documents/${docId}`);
  await settled(page);
  const text = page.locator(".markdown").first();
  await text.getByRole("heading", { name: "Guide to the harbour 𝒳", level: 2 }).waitFor();
  await text.getByRole("heading", { name: "Lights", level: 3 }).waitFor();
  assert.equal(await text.locator("strong").textContent(), "enter");
  assert.equal(await text.locator("ol > li").count(), 2);
  assert.equal(await text.locator("ol ul > li").count(), 2);
  assert.match(await text.locator("blockquote").textContent(), /A quotation of the\s+second line\./);
  assert.equal(await text.getByRole("cell", { name: "Green | white" }).count(), 1);
  assert.equal((await text.locator("pre").last().textContent()).trim(), 'harbour --open "north" | tee log');
  const links = await text.locator("a").evaluateAll((links) => links.map(({ href, rel, target }) => ({ href, rel, target })));
  const rest = { rel: "noopener noreferrer", target: "_blank" };
  assert.deepEqual(links, [
    { href: "https://tides.example/today?port=7", ...rest },
    { href: "https://harbour.example/", ...rest },
    { href: "mailto:master@harbour.example", ...rest },
    { href: "https://charts.example/north.png", ...rest },
  ]);
  await text.getByText("(https://tides.example/today?port=7)").waitFor();
  await text.getByText("(javascript:window.hacked=1)").waitFor();
  assert.equal(await page.evaluate(() => document.querySelectorAll(".document-text img, .document-text script").length), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await text.getByText('<img src=x onerror="window.hacked=1">').waitFor();
  await checkAccessibility(page, "a document in Markdown");
  await shoot(page, "markdown");

  await page.getByRole("tab", { name: "Text" }).click();
  await page.getByText("| Light | Seconds | |").waitFor();
  await page.keyboard.press("ArrowLeft");
  await text.getByRole("heading", { name: "Lights" }).waitFor();
});

test("a passage is marked exactly, through emphasis, lists, tables and code", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  const parts = {
    "**enter** by the *north* channel": "enter by the north channel",
    "port:\n   - blinking: wait": "port:blinking: wait",
    "quotation of the\n> second": "quotation of the\nsecond",
    "4       | x |\n| Green \\| white": "4xGreen | white",
    '"north" | tee': '"north" | tee',
    "last &amp; longest *line of\ntwo*": "last & longest line of\ntwo",
  };
  for (const [part, expected] of Object.entries(parts)) {
    await page.goto(await at(part));
    await page.locator("#passage").waitFor();
    const marks = await page.locator(".markdown .passage-mark").allTextContents();
    assert.equal(marks.join(""), expected);
    assert.equal(await page.locator("#passage").count(), 1);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "passage");
  }
  await checkWidth(page, "a document in Markdown");
  await page.goto(await at("quotation of the\n> second"));
  await page.locator("#passage").waitFor();
  await checkAccessibility(page, "a passage in Markdown");
  await shoot(page, "markdown-phone");
});

test("a passage that goes on over the end of a page is shown on each, at each zoom", { skip: !process.env.LKR_CONSOLE_PAGES }, async (t) => {
  const lines = (page) => Array.from({ length: 8 }, (_, n) => `Observation ${page}.${n} of the spring tide at the northern breakwater.`);
  const task = await ended((await upload("observations.pdf", pdf([lines(1), lines(2), lines(3)]))).task_id);
  assert.equal(task.status, "done", JSON.stringify(task.error));
  const { text } = await api("GET", `/documents/${task.doc_id}/text`);
  const [start, end] = [text.indexOf("Observation 2.6"), text.indexOf("Observation 3.2")];
  const page = await visit(t);
  await page.goto(`${BASE}/documents/${task.doc_id}?at=${start}-${end}&page=2`);
  await page.getByText("The passage is on pages 2–3.").waitFor();
  await page.locator(".page-box").first().waitFor();
  await checkAccessibility(page, "a passage on two pages");
  await shoot(page, "passage-pages");
  const image = page.locator(".page-image img");
  await page.getByRole("button", { name: "Go on to page 3" }).click();
  await page.getByAltText(/^Page 3 of .?observations/).waitFor();
  await page.locator(".page-box").first().waitFor();
  assert.match(page.url(), /page=3/);
  await page.getByRole("button", { name: "Back to page 2" }).click();
  await page.getByAltText(/^Page 2 of .?observations/).waitFor();

  await page.locator(".page-box").first().waitFor();
  const width = async () => Math.round((await page.locator(".page-image").boundingBox()).width);
  const fit = await width();
  const zoom = page.getByLabel("Zoom");
  await zoom.selectOption("100 %");
  await page.waitForFunction(() => document.querySelector(".page-image").getBoundingClientRect().width === (612 * 96) / 72);
  // 816 pixels fit beside the outline at this width of the window, 1224 do not.
  assert.ok(fit > 816 && fit < 1224, `${fit}`);
  await page.getByRole("region", { name: "Page 2" }).focus();
  await page.keyboard.press("+");
  assert.equal(await zoom.inputValue(), "fit");
  await page.keyboard.press("+");
  assert.equal(await zoom.inputValue(), "150");
  await page.waitForFunction(() => document.querySelector(".page-image").getBoundingClientRect().width === (612 * 144) / 72);
  await page.waitForFunction(() => document.querySelector(".page-image img")?.naturalWidth > 0);
  await page.locator(".page-box").first().waitFor();
  const [box, frame] = [await page.locator(".page-box").first().boundingBox(), await image.boundingBox()];
  assert.ok(box.x >= frame.x && box.x + box.width <= frame.x + frame.width, "the mark grows with the page");
  await checkWidth(page, "a page that is larger than the window");
  await shoot(page, "zoom");
  await page.keyboard.press("-");
  await page.keyboard.press("-");
  assert.equal(await zoom.inputValue(), "100");

  const phone = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  await phone.goto(`${BASE}/documents/${task.doc_id}?at=${start}-${end}&page=1`);
  await phone.getByText("该段落位于第 2–3 页。").waitFor();
  await phone.getByRole("button", { name: "返回第 2 页" }).click();
  await phone.locator(".page-box").first().waitFor();
  await checkWidth(phone, "a passage on two pages");
  await shoot(phone, "passage-pages-phone");
});
