// The pages of the administration: what they show of changes made elsewhere, and what they do not let get lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, api, checkAccessibility, checkWidth, once, settled, shoot, signIn, visit } from "./browser.mjs";

const PASSWORD = "a password for tests";

/** Changes what the server answers to the page's requests of a path. */
async function answering(page, path, change) {
  await page.route(`${BASE}/api/v1${path}`, async (route) => {
    const response = await route.fetch();
    const envelope = await response.json();
    const headers = response.headers();
    change(envelope.data, headers);
    await route.fulfill({ response, headers, json: envelope });
  });
}

test("categories that the file has no more are told with their documents", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone });
  await signIn(page, ADMIN);
  await answering(page, "/knowledge/stats", (stats) => (stats.categories["Harbour life"] = 12));
  await page.goto(`${BASE}/admin/taxonomy`);
  await settled(page);
  await page.getByText("Not in the file any more.").waitFor();
  const link = page.getByRole("link", { name: "12 documents : Harbour life" });
  assert.equal(new URL(await link.getAttribute("href"), BASE).searchParams.get("category"), "Harbour life");
  await checkWidth(page, "former categories");
  await checkAccessibility(page, "former categories");
  await shoot(page, "taxonomy-former");
});

test("a long chain of categories fits the window", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone });
  await signIn(page, ADMIN);
  await answering(page, "/knowledge/categories", (data) => {
    data.categories = Array.from({ length: 500 }, (_, n) => ({
      id: `c${n}`,
      name: `Category ${n} of a long chain`,
      description: "",
      keywords: [],
      parent: n === 0 ? null : `c${n - 1}`,
    }));
  });
  await page.goto(`${BASE}/admin/taxonomy`);
  await page.getByText("Category 499 of a long chain").waitFor();
  await checkWidth(page, "a long chain of categories");
});

test("documents are counted anew when they have been classified again", async (t) => {
  await addText({ title: "Ropes", text: "Ropes are coiled on the pier.", force: true });
  const page = await visit(t);
  await signIn(page, ADMIN);
  let isClassified = false;
  await answering(page, "/knowledge/stats", (stats) => (stats.categories = { [isClassified ? "Later" : "Earlier"]: 7 }));
  await page.goto(`${BASE}/admin/taxonomy`);
  await page.getByText("Earlier", { exact: true }).waitFor();
  isClassified = true;
  await page.getByRole("button", { name: "Classify again" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Classify again" }).click();
  await page.getByText("Later", { exact: true }).waitFor();
  assert.equal(await page.getByText("Earlier", { exact: true }).count(), 0);
});

test("settings are saved behind a proxy that compresses", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  const { dedup } = await api("GET", "/settings");
  t.after(() => api("PUT", "/settings", { dedup }));
  await answering(page, "/settings", (_, headers) => (headers.etag = `W/${headers.etag.replace(/"$/, '-gzip"')}`));
  await page.goto(`${BASE}/admin/settings`);
  await settled(page);
  const threshold = page.getByRole("spinbutton", { name: /bits/i });
  for (const bits of [7, 8]) {
    await threshold.fill(String(bits));
    await page.getByText("1 change is not saved.").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("1 change is not saved.").waitFor({ state: "detached" });
    assert.equal((await api("GET", "/settings")).dedup.simhash_threshold, bits);
  }
});

test("an admin who is one no more sees what a user sees", async (t) => {
  await once("POST", "/users", { username: "former-admin", password: PASSWORD, must_change_password: false });
  await api("PATCH", "/users/former-admin", { role: "admin" });
  const page = await visit(t, { statuses: [403] });
  await signIn(page, { username: "former-admin", password: PASSWORD });
  await page.goto(`${BASE}/admin/groups`);
  await settled(page);
  await api("PATCH", "/users/former-admin", { role: "user" });
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("heading", { name: "This is not open to you", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Audit log" }).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("link", { name: "Documents" }).count(), 1);
});

test("a new key is lost neither by another press of Enter nor by the way back", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/spaces`);
  await settled(page);
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("a key for tests");
  await page.keyboard.press("Enter");
  const shown = page.getByRole("dialog", { name: "The key is created" });
  const secret = shown.getByLabel("API key", { exact: true });
  await secret.waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  const key = await secret.inputValue();
  assert.match(key, /^lkr_[0-9a-f]{64}$/);

  const question = page.getByRole("dialog", { name: "Leave without a copy?" });
  await page.goBack();
  await question.waitFor();
  await checkAccessibility(page, "the question about a key");
  await question.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await secret.inputValue(), key);

  // With a copy nothing is asked.
  await shown.getByRole("button", { name: "Copy", exact: true }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await page.goBack();
  await page.getByRole("heading", { name: "Spaces", level: 1 }).waitFor();
  assert.equal(await question.count(), 0);
  await once("DELETE", `/auth/keys/${(await api("GET", "/auth/keys")).items[0].id}`);
});

test("a space keeps who may read it while its title is edited", async (t) => {
  await once("POST", "/spaces", { space: "harbour", title: "Harbour", read: "everyone", write: "accounts" });
  await api("PATCH", "/spaces/harbour", { title: "Harbour", read: "everyone", write: "accounts" });
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/spaces/harbour`);
  await settled(page);
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit the space" });
  await editor.getByLabel("Title").fill("The harbour");
  // Somebody else closes the space meanwhile.
  await api("PATCH", "/spaces/harbour", { read: "members", write: "members" });

  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Discard the changes?" }).getByRole("button", { name: "Cancel" }).click();
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "The harbour" }).waitFor();
  const { title, read, write } = await api("GET", "/spaces/harbour");
  assert.deepEqual({ title, read, write }, { title: "The harbour", read: "members", write: "members" });
});

test("a password that is too long is refused and not cut", async (t) => {
  const page = await visit(t, { statuses: [400] });
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/admin/users`);
  await settled(page);
  await page.getByRole("button", { name: "Create an account" }).click();
  const dialog = page.getByRole("dialog", { name: "Create an account" });
  await dialog.getByLabel("Username", { exact: true }).fill("long-password");
  const password = dialog.getByLabel("Password", { exact: true });
  await password.fill("x".repeat(129));
  assert.equal((await password.inputValue()).length, 129);
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  assert.equal(await password.evaluate((field) => field.validity.patternMismatch), true);
  await page.keyboard.press("Escape");

  await page.goto(`${BASE}/account`);
  await page.getByLabel("Current password").fill(ADMIN.password);
  for (const label of ["New password", "New password again"]) {
    await page.getByLabel(label, { exact: true }).fill("x".repeat(129));
  }
  await page.keyboard.press("Enter");
  await page.getByText("password: has 129 characters; allowed are 8 to 128").waitFor();
});
