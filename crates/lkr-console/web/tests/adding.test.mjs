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
