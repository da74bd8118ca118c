// Texts that try to be more than text: mark-up, scripts, and characters that turn the direction of what follows.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, api, checkWidth, ended, once, settled, signIn, upload, visit } from "./browser.mjs";

const MARKUP = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"><svg/onload=window.hacked=1>{{7*7}}\${7*7}`;
const TURNED = "invoice \u202Efdp.exe\u202C \u2066\u2067left\u2069 \u200F\u061C";
const LONG = "W".repeat(400);
const TITLE = `${MARKUP} ${TURNED}`;

let docId;
let taskId;
let fileId;
let markdownId;
let wideId;

before(async () => {
  const text = `# ${MARKUP}\n\nkraken ${MARKUP} ${TURNED}\n\n## ${TURNED}\n\n${LONG} kraken javascript:window.hacked=1 [x](javascript:window.hacked=1)`;
  const task = await addText({
    title: TITLE,
    text,
    source: `javascript:window.hacked=1//${MARKUP}`,
    metadata: { [`<b>${"k".repeat(20)}`]: `${MARKUP}${TURNED}${LONG}` },
    force: true,
  });
  assert.equal(task.status, "done", JSON.stringify(task.error));
  docId = task.doc_id;
  taskId = task.task_id;
  const file = await ended((await upload(`${MARKUP.replace("/", "")}${LONG.slice(0, 80)}.txt`, `kraken in a file ${MARKUP}`)).task_id);
  assert.equal(file.status, "done", JSON.stringify(file.error));
  fileId = file.doc_id;
  const markdown = await ended((await upload("hostile.md", `${text}\n\n**${TURNED}** [${TURNED}](https://example.com/${MARKUP}) \`${TURNED}\`\n\n| ${TURNED} | ${LONG} |\n|---|---|\n| ${MARKUP.replaceAll("|", "")} | x |\n`)).task_id);
  assert.equal(markdown.status, "done", JSON.stringify(markdown.error));
  markdownId = markdown.doc_id;
  await once("POST", "/spaces", { space: "wide", title: LONG.slice(0, 200), read: "everyone" });
  const wide = await addText({ title: LONG, text: `kraken ${LONG}`, source: LONG, space: "wide", metadata: { [LONG.slice(0, 200)]: LONG }, force: true });
  wideId = wide.doc_id;
  await once("POST", "/groups", { group: "hostile", title: `${MARKUP}${LONG}`.slice(0, 200) });
  await api("POST", "/auth/keys", { name: MARKUP.slice(0, 100) });
  await once("POST", "/spaces", { space: "hostile", title: TITLE.slice(0, 190).replace(/[\u0000-\u001f]/g, ""), description: `${MARKUP}${LONG}`, read: "everyone" });
});

for (const width of [WIDTHS.desktop, WIDTHS.phone]) {
  test(`hostile texts stay texts at ${width} px`, async (t) => {
    const page = await visit(t, { width });
    await signIn(page, ADMIN);
    const paths = ["/?q=kraken", "/documents", `/documents/${docId}`, `/documents/${fileId}`, `/documents/${markdownId}`, `/documents/${wideId}`, "/tasks", `/tasks/${taskId}`, "/spaces", "/spaces/hostile", "/keys", "/admin/groups", "/admin/groups/hostile", "/admin/taxonomy", "/admin/statistics", "/admin/audit"];
    for (const path of paths) {
      await page.goto(BASE + path);
      await settled(page);
      await checkWidth(page, path);
      await checkNothingRan(page, path);
    }
    await page.goto(`${BASE}/documents`);
    await settled(page);
    const table = await page.locator(".table-frame").evaluate((frame) => [frame.scrollWidth, frame.clientWidth]);
    assert.ok(table[0] <= table[1], `columns beside the window: ${table}`);
    // The drawer, the edit dialog and the question before deleting show the same texts.
    await page.goto(`${BASE}/?q=kraken`);
    await page.getByRole("button", { name: "Why this?" }).first().click();
    await page.getByRole("dialog").locator("table").waitFor();
    await checkNothingRan(page, "the drawer");
    await page.goto(`${BASE}/documents/${docId}`);
    await settled(page);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("dialog").getByLabel("Title").waitFor();
    await checkNothingRan(page, "the edit dialog");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByText("cannot be undone").waitFor();
    await checkNothingRan(page, "the question before deleting");
  });
}

/** Nothing of the texts became an element, a script or a link that runs, and nothing turns the direction of the page. */
async function checkNothingRan(page, name) {
  const found = await page.evaluate(() => ({
    hacked: window.hacked ?? null,
    images: document.querySelectorAll("img[src=x], svg[onload], script:not([src])").length,
    links: [...document.querySelectorAll("a")].filter((link) => link.href.startsWith("javascript:")).length,
    // A character that turns the direction ends with its element only if the element isolates.
    leaking: [...document.querySelectorAll("body *")]
      .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && /[\u202A-\u202E]/.test(node.data)))
      .filter((element) => element.localName !== "option" && element.localName !== "textarea")
      .filter((element) => !["isolate", "isolate-override", "plaintext"].includes(getComputedStyle(element).unicodeBidi))
      .map((element) => element.outerHTML.slice(0, 120)),
  }));
  assert.deepEqual(found, { hacked: null, images: 0, links: 0, leaking: [] }, name);
}
