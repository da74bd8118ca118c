// Files that the server refuses, and what becomes of their rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, BASE, WIDTHS, api, checkAccessibility, checkWidth, once, settled, shoot, signIn, visit } from "./browser.mjs";
import { pdf } from "./pdf.mjs";

const BROKEN = { name: "broken.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\nnothing follows") };
const WHOLE = { name: "broken.pdf", mimeType: "application/pdf", buffer: Buffer.from(pdf([["The lighthouse is red."]])) };

test("a refused file is named with its reason after a reload, and can be sent again or dismissed", async (t) => {
  const page = await visit(t, { statuses: [400] });
  await signIn(page, ADMIN, "/login");
  await page.goto(`${BASE}/add`);
  await choose(page, [BROKEN, { ...BROKEN, name: "other.pdf" }]);
  const rows = page.locator(".queue li");
  await rows.filter({ hasText: "broken.pdf" }).getByText("Failed").waitFor();
  await rows.filter({ hasText: "other.pdf" }).getByText("Failed").waitFor();
  const reason = await rows.filter({ hasText: "broken.pdf" }).locator(".field-error").textContent();

  await page.reload();
  await page.getByRole("heading", { name: "Refused earlier" }).waitFor();
  assert.equal(await rows.count(), 2);
  assert.equal(await rows.filter({ hasText: "broken.pdf" }).locator(".field-error").textContent(), reason);
  const kept = await page.evaluate(() => JSON.stringify(sessionStorage));
  assert.ok(!/token|csrf|nothing follows/i.test(kept), kept);
  await checkAccessibility(page, "files that were refused earlier");
  await shoot(page, "refused");

  await rows.filter({ hasText: "other.pdf" }).getByRole("button", { name: "Dismiss" }).click();
  await rows.filter({ hasText: "other.pdf" }).waitFor({ state: "detached" });
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), rows.getByRole("button", { name: "Try again" }).click()]);
  await chooser.setFiles(WHOLE);
  await rows.filter({ hasText: "broken.pdf" }).getByText("Done").waitFor();
  assert.equal(await rows.count(), 1);
  await page.reload();
  await settled(page);
  assert.equal(await rows.count(), 0, "nothing of a file that was sent in the end");
});

test("a file that is chosen again takes the place of its failed row", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh", statuses: [400] });
  await signIn(page, ADMIN, "/login");
  await page.goto(`${BASE}/add`);
  const rows = page.locator(".queue li");
  for (let round = 0; round < 2; round++) {
    await choose(page, [BROKEN, { name: "notes.xyz", mimeType: "text/plain", buffer: Buffer.from("x") }]);
    await rows.filter({ hasText: "broken.pdf" }).getByText("失败").waitFor();
    assert.equal(await rows.count(), 2, `after round ${round}`);
  }
  await page.reload();
  await rows.filter({ hasText: "broken.pdf" }).getByText("失败").waitFor();
  assert.equal(await rows.count(), 1);
  await checkWidth(page, "refused files");
  await shoot(page, "refused-phone");
});

test("nothing of refused files stays after signing out", async (t) => {
  const page = await visit(t, { statuses: [400] });
  await signIn(page, ADMIN, "/login");
  await page.goto(`${BASE}/add`);
  await choose(page, [BROKEN]);
  await page.locator(".queue li").getByText("Failed").waitFor();
  assert.notEqual(await page.evaluate(() => sessionStorage.length), 0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Sign in", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("the next account finds nothing of files that were sent before its login", async (t) => {
  const clerk = { username: "clerk", password: "a password of clerk" };
  await once("POST", "/users", { ...clerk, must_change_password: false });
  await api("PUT", "/spaces/default/members/user:clerk", { role: "writer" });
  const page = await visit(t, { statuses: [400, 401] });
  await signIn(page, clerk);
  await page.getByRole("link", { name: "Add", exact: true }).first().click();
  const rows = page.locator(".queue li");
  await choose(page, [BROKEN]);
  await rows.getByText("Failed").waitFor();
  await api("PATCH", "/users/clerk", { disabled: true });
  await page.getByRole("link", { name: "API keys" }).click();

  await page.getByLabel("Username", { exact: true }).fill(ADMIN.username);
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await page.keyboard.press("Enter");
  await page.locator(".who").filter({ hasText: ADMIN.username }).waitFor();
  await page.getByRole("link", { name: "Add", exact: true }).first().click();
  await page.locator(".drop").waitFor();
  assert.equal(await rows.count(), 0);
  await api("PATCH", "/users/clerk", { disabled: false });
});

async function choose(page, files) {
  await page.locator(".drop input[type=file]").first().setInputFiles(files);
}

test("files go to the space of the address, also before the spaces are known", async (t) => {
  await once("POST", "/spaces", { space: "vault", title: "The vault" });
  const page = await visit(t);
  await signIn(page, ADMIN);
  let answer;
  const isAsked = new Promise((resolve) => {
    page.route("**/api/v1/spaces?*", async (route) => {
      resolve();
      await new Promise((go) => (answer = go));
      await route.continue();
    });
  });
  await page.goto(`${BASE}/add?space=vault`);
  await isAsked;
  await choose(page, [{ name: "secret.md", mimeType: "text/markdown", buffer: Buffer.from("# Secret\n\nThe key is under the mat.") }]);
  const row = page.locator(".queue li");
  await row.getByText("Done").waitFor();
  answer();
  const href = await row.getByRole("link", { name: "secret.md" }).getAttribute("href");
  assert.equal((await api("GET", href)).l1.space, "vault");
  await page.getByLabel("Space").locator("option", { hasText: "The vault" }).waitFor({ state: "attached" });
  assert.equal(await page.getByLabel("Space").inputValue(), "vault");
});

test("what is not sent yet can be stopped", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, language: "zh" });
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/add`);
  await page.route("**/api/v1/documents/upload", () => {});
  const files = Array.from({ length: 5 }, (_, at) => ({ name: `held-${at}.md`, mimeType: "text/markdown", buffer: Buffer.from("x") }));
  await choose(page, files);
  await page.getByRole("button", { name: "停止发送" }).click();
  const rows = page.locator(".queue li");
  await rows.nth(4).getByText("发送已停止，因此未发送。").waitFor();
  await checkAccessibility(page, "files that were stopped");
  await checkWidth(page, "files that were stopped");
  assert.equal(await page.locator("progress").count(), 0, "what is left out has no progress");
  await shoot(page, "stopped");
  await page.unroute("**/api/v1/documents/upload");
  await rows.first().getByRole("button", { name: "重试" }).click();
  await rows.filter({ hasText: "完成" }).or(rows.filter({ hasText: "重复" })).first().waitFor();
});

test("a pasted text is named by its first line, also where that is cut amid emoji, and is not lost by a click", async (t) => {
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/add`);
  await page.getByRole("button", { name: "Paste a text" }).click();
  const line = `a${"😀".repeat(100)}`;
  await page.getByLabel("Text", { exact: true }).fill(`${line}\nThe tide rises.`);
  await page.getByRole("link", { name: "Tasks" }).click();
  const question = page.getByRole("dialog", { name: "Discard the changes?" });
  await question.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const row = page.locator(".queue li");
  await row.getByText(/Done|Duplicate/).waitFor();
  await row.getByText(Array.from(line).slice(0, 80).join(""), { exact: true }).waitFor();
});
