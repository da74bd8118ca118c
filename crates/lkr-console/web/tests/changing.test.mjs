// Changing documents: nothing changes that the person did not change, and what was cancelled does not happen.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, api, checkAccessibility, checkWidth, ended, shoot, signIn, visit } from "./browser.mjs";

const METADATA = { port: "7", "lines of text": "one\ntwo=2", "a=b": "c", padded: " x " };

let docId;

before(async () => {
  const task = await addText({ title: "Log", text: "The log of the harbour.", metadata: METADATA, force: true });
  docId = task.doc_id;
});

const document = async () => (await api("GET", `/documents/${docId}`)).l1;

async function edit(page) {
  await page.goto(`${BASE}/documents/${docId}`);
  await page.getByRole("button", { name: "Edit" }).click();
  return page.getByRole("dialog", { name: "Edit" });
}

test("metadata that a line cannot hold stays as it is", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone });
  await signIn(page, ADMIN);
  const editor = await edit(page);
  await editor.getByText("Kept as they are").waitFor();
  await checkAccessibility(page, "metadata that is kept");
  await checkWidth(page, "metadata that is kept");
  await shoot(page, "metadata-kept");
  // Nothing was changed, so nothing is asked.
  await page.keyboard.press("Escape");
  await editor.waitFor({ state: "detached" });

  await edit(page);
  await editor.getByLabel("Title").fill("Log book");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  const renamed = await document();
  assert.equal(renamed.title, "Log book");
  assert.deepEqual(renamed.metadata, METADATA);

  await edit(page);
  await editor.getByLabel("Metadata").fill("port=8\nlamp=red");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  assert.deepEqual((await document()).metadata, { ...METADATA, port: "8", lamp: "red" });
});

test("a replacement that is cancelled while it is sent changes nothing", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents/${docId}`);
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  await network.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 40_000 });
  await page.getByRole("button", { name: "Replace" }).click();
  const dialog = page.getByRole("dialog", { name: "Replace" });
  await dialog.locator("input[type=file]").setInputFiles({ name: "new.txt", mimeType: "text/plain", buffer: Buffer.from("A new log. ".repeat(200_000)) });
  const finished = [];
  page.on("requestfinished", (request) => request.method() === "PUT" && finished.push(request.url()));
  const failed = page.waitForEvent("requestfailed", { predicate: (request) => request.method() === "PUT" });
  await dialog.getByRole("button", { name: "Replace" }).click();
  await dialog.locator("progress").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await failed;
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(finished, []);
  assert.equal(await page.getByText("A new version is being read.").count(), 0);
  assert.equal((await api("GET", `/documents/${docId}/text`)).text, "The log of the harbour.");
});

test("a file that cannot be taken is told before it is sent, and a replacement that fails afterwards", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents/${docId}`);
  await page.getByRole("button", { name: "Replace" }).click();
  const dialog = page.getByRole("dialog", { name: "Replace" });
  const input = dialog.locator("input[type=file]");
  await input.setInputFiles({ name: "log.xyz", mimeType: "text/plain", buffer: Buffer.from("x") });
  await dialog.getByText("The format is not one that can be read here.").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Replace" }).getAttribute("aria-disabled"), "true");
  // What the server tells of the task last is that it failed, however fast it is done.
  await page.route(/\/documents\/tasks\/[^/]+$/, async (route) => {
    if (route.request().resourceType() === "eventsource") return route.continue();
    const response = await route.fetch();
    const { data, ...envelope } = await response.json();
    const failed = { status: "failed", error: { code: 1010, message: "cancelled", retryable: true }, updated_at: "2999-01-01T00:00:00Z" };
    return route.fulfill({ response, json: { ...envelope, data: { ...data, ...failed } } });
  });
  await input.setInputFiles({ name: "log.txt", mimeType: "text/plain", buffer: Buffer.from("Another log of the harbour.") });
  await dialog.getByRole("button", { name: "Replace" }).click();
  await page.getByText("The new version could not be taken; the document is as it was.").waitFor();
  await checkAccessibility(page, "a replacement that failed");
});

test("links and citations are copied without the clipboard of a page with TLS", async (t) => {
  const page = await visit(t);
  await page.addInitScript(() => Object.defineProperty(Navigator.prototype, "clipboard", { get: () => undefined }));
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents/${docId}`);
  await page.getByRole("button", { name: "Copy the link to this place" }).click();
  await page.getByText("The link is copied.").waitFor();
  await page.evaluate(() => (document.execCommand = () => false));
  await page.getByRole("button", { name: "Copy the link to this place" }).click();
  await page.getByText("The browser does not let this page copy.").waitFor();
});

test("selecting a text beyond the edge of a dialog, or pressing Escape again and again, closes nothing that is kept", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/admin/users`);
  await page.getByRole("button", { name: "Create" }).click();
  const creating = page.getByRole("dialog");
  await creating.getByLabel("Username").fill("somebody");
  const field = await creating.getByLabel("Username").boundingBox();
  await page.mouse.move(field.x + 60, field.y + field.height / 2);
  await page.mouse.down();
  await page.mouse.move(5, field.y, { steps: 4 });
  await page.mouse.up();
  assert.equal(await creating.getByLabel("Username").inputValue(), "somebody");
  await page.mouse.click(5, field.y);
  await creating.waitFor({ state: "detached" });

  const editor = await edit(page);
  await editor.getByLabel("Title").pressSequentially("!");
  const question = page.getByRole("dialog", { name: "Discard the changes?" });
  for (let round = 0; round < 3; round++) {
    await page.keyboard.press("Escape");
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    assert.ok(await editor.getByLabel("Title").isVisible(), `round ${round}`);
  }
  assert.match(await editor.getByLabel("Title").inputValue(), /!$/);
});

test("a change leaves what somebody else has changed meanwhile", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  const editor = await edit(page);
  // The page shows the new version as soon as it is there.
  const { task_id } = await api("PUT", `/documents/${docId}`, { title: "Log of the year", text: "The log of a whole year." });
  await ended(task_id);
  await page.locator("h1").getByText("Log of the year").waitFor();
  await editor.getByLabel("Source").fill("the harbour");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  const { title, source } = await document();
  assert.deepEqual({ title, source }, { title: "Log of the year", source: "the harbour" });
});
