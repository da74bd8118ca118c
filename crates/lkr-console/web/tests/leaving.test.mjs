// Changes that are not saved are not lost without a question.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, checkAccessibility, settled, shoot, signIn, visit } from "./browser.mjs";

let docId;

before(async () => {
  const task = await addText({ title: "Buoys", text: "A buoy marks the channel.", force: true });
  docId = task.doc_id;
});

test("settings that are not saved are asked about, by links, by the browser's buttons and at a reload", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents`);
  await settled(page);
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  const field = page.getByRole("spinbutton").first();
  const before = await field.inputValue();
  const question = page.getByRole("dialog", { name: "Discard the changes?" });

  await field.fill(`${Number(before) + 1}`);
  await page.getByRole("link", { name: "Users" }).click();
  await question.waitFor();
  await checkAccessibility(page, "the question before leaving");
  await shoot(page, "leaving");
  await question.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await field.inputValue(), `${Number(before) + 1}`);
  assert.equal(new URL(page.url()).pathname, "/admin/settings");

  await page.goBack();
  await question.waitFor();
  assert.equal(new URL(page.url()).pathname, "/admin/settings");
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  assert.equal(await field.inputValue(), `${Number(before) + 1}`);

  const dialogs = [];
  page.on("dialog", (dialog) => dialogs.push(dialog.type()));
  await page.reload();
  await settled(page);
  assert.deepEqual(dialogs, ["beforeunload"]);

  await page.getByRole("link", { name: "Documents" }).click();
  await page.getByRole("heading", { name: "Documents" }).waitFor();
  await page.getByRole("link", { name: "Settings" }).click();
  await field.fill(`${Number(before) + 1}`);
  await page.goBack();
  await question.getByRole("button", { name: "Discard" }).click();
  await page.getByRole("heading", { name: "Documents" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/documents");

  await page.getByRole("link", { name: "Settings" }).click();
  await field.fill(before);
  await page.getByRole("link", { name: "Users" }).click();
  await page.getByRole("heading", { name: "Users" }).waitFor();
});

test("a document that is being edited keeps its changes until they are saved or discarded", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents/${docId}`);
  await settled(page);
  const open = () => page.getByRole("button", { name: "编辑" }).click();
  const editor = page.getByRole("dialog", { name: "编辑" });
  const title = editor.getByLabel("标题");
  const question = page.getByRole("dialog", { name: "放弃更改？" });

  await open();
  await title.waitFor();
  await page.keyboard.press("Escape");
  await editor.waitFor({ state: "detached" });

  await open();
  await title.fill("Buoys and beacons");
  await page.keyboard.press("Escape");
  await question.waitFor();
  await shoot(page, "leaving-phone");
  await question.getByRole("button", { name: "取消" }).click();
  assert.equal(await title.inputValue(), "Buoys and beacons");
  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "放弃" }).click();
  await editor.waitFor({ state: "detached" });

  await open();
  assert.equal(await title.inputValue(), "Buoys");
  await title.fill("Buoys and beacons");
  await editor.getByRole("button", { name: "保存" }).click();
  await editor.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Buoys and beacons", level: 1 }).waitFor();
});
