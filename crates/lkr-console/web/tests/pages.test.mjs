// Every page, seen by a browser: in each width, theme and language with LKR_CONSOLE_MATRIX=all, else one of each kind.
// Screenshots go to LKR_CONSOLE_SHOTS, if it names a folder.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { before, test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, api, checkAccessibility, checkWidth, ended, once, settled, signIn, upload, visit } from "./browser.mjs";

const IS_WHOLE = process.env.LKR_CONSOLE_MATRIX === "all";
const SHOTS = process.env.LKR_CONSOLE_SHOTS;

/** The pages, by a name for their screenshots. `{…}` is filled in with what `prepare` made. */
const PAGES = {
  search: "/",
  results: "/?q=tides",
  filters: "/?q=tides&category=Science&group=document",
  conditions: `/?q=tides&where=${encodeURIComponent(JSON.stringify([["metadata.port", "gte", "7"], ["title", "prefix", "Tides"]]))}`,
  nothing: "/?q=zzzzqqqq",
  documents: "/documents",
  document: "/documents/{document}?at={passage}",
  markdown: "/documents/{markdown}",
  add: "/add",
  tasks: "/tasks",
  task: "/tasks/{task}",
  failed: "/tasks/{failed}",
  spaces: "/spaces",
  space: "/spaces/harbour",
  keys: "/keys",
  account: "/account",
  users: "/admin/users",
  groups: "/admin/groups",
  group: "/admin/groups/sailors",
  settings: "/admin/settings",
  taxonomy: "/admin/taxonomy",
  statistics: "/admin/statistics",
  evaluation: "/admin/evaluation",
  webhooks: "/admin/webhooks",
  webhook: "/admin/webhooks/{webhook}",
  audit: "/admin/audit",
  backup: "/admin/backup",
  missing: "/no-such-page",
  missing_document: "/documents/00000000000000000000000000000000",
};

/** What a run that is not whole looks at: each page once, in combinations that show every width, theme and language. */
const SAMPLES = [
  { width: "desktop", theme: "light", language: "en" },
  { width: "phone", theme: "dark", language: "zh" },
  { width: "tablet", theme: "dark", language: "en" },
  { width: "phone", theme: "light", language: "en" },
];

const values = {};

before(async () => {
  await once("POST", "/spaces", { space: "harbour", title: "Harbour", description: "Ships and tides", read: "members" });
  await once("POST", "/users", { username: "bosun", password: "a password of bosun", must_change_password: false });
  await once("POST", "/groups", { group: "sailors", title: "Sailors" });
  await api("PUT", "/groups/sailors/members/bosun");
  await api("PUT", "/spaces/harbour/members/group:sailors", { role: "writer" });
  const sentences = Array.from({ length: 60 }, (_, n) => `Observation ${n}: the tide rose by ${n} centimetres at the pier.`);
  const text = `# Tides\n\nThe sea rises and falls twice a day.\n\n## Heights\n\n${sentences.join(" ")}\n\n## Currents\n\nThe water runs.`;
  const done = await addText({ title: "Tides of the harbour", text, source: "text:tides", space: "harbour", force: true, metadata: { port: "7" } });
  values.document = done.doc_id;
  const { items: chunks } = await api("GET", `/documents/${done.doc_id}/chunks`);
  values.passage = `${chunks[1].char_start}-${chunks[1].char_end}`;
  values.task = done.task_id;
  const table = "| Port | Metres |\n|---|---|\n| North | 4 |\n";
  values.markdown = (await ended((await upload("tides.md", `# Tides\n\n- one\n- two\n\n${table}\n\`\`\`\ncode\n\`\`\`\n`)).task_id)).doc_id;
  const webhook = await api("POST", "/webhooks", { url: "http://127.0.0.1:9/hook", events: ["task.done"] });
  values.webhook = webhook.id;
  const { items } = await api("GET", "/documents/tasks?status=failed&limit=1");
  values.failed = items[0]?.task_id ?? done.task_id;
  if (SHOTS) await mkdir(SHOTS, { recursive: true });
});

const combinations = IS_WHOLE
  ? Object.keys(WIDTHS).flatMap((width) =>
      ["light", "dark"].flatMap((theme) => ["en", "zh"].map((language) => ({ width, theme, language }))),
    )
  : SAMPLES;

for (const [place, { width, theme, language }] of combinations.entries()) {
  test(`pages at ${WIDTHS[width]} px, ${theme}, ${language}`, async (t) => {
    const page = await visit(t, { width: WIDTHS[width], theme, language, statuses: [404] });
    await signIn(page, ADMIN);
    const names = Object.keys(PAGES).filter((_, at) => IS_WHOLE || at % combinations.length === place);
    for (const name of names) {
      const path = PAGES[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
      await page.goto(BASE + path);
      await settled(page);
      assert.equal(await page.locator("h1").count(), 1, `one heading on ${name}`);
      // The title is set when the page is drawn.
      await page.waitForFunction(() => document.title !== "lkr");
      await checkWidth(page, name);
      await checkAccessibility(page, name);
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}-${WIDTHS[width]}-${theme}-${language}.png` });
    }
  });
}

test("the login page, alone and in the frame", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark" });
  await page.goto(`${BASE}/login`);
  await settled(page);
  await checkAccessibility(page, "login");
  await page.goto(`${BASE}/admin/users`);
  await page.getByText("This page needs a login.").waitFor();
  await checkWidth(page, "a page that needs a login");
});
