// The console by keyboard alone.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, BASE, addText, settled, visit } from "./browser.mjs";

before(async () => {
  await addText({ title: "Knots", text: "# Knots\n\n## Bowline\n\nThe bowline makes a loop that does not slip.", force: true });
});

test("sign in, search, explain, open and go back without a mouse", async (t) => {
  const page = await visit(t);
  await page.goto(`${BASE}/login`);
  await page.getByLabel("Username").waitFor();
  await page.keyboard.type(ADMIN.username);
  await page.keyboard.press("Tab");
  await page.keyboard.type(ADMIN.password);
  await page.keyboard.press("Enter");
  await page.getByLabel("Search the documents").waitFor();
  await page.keyboard.type("bowline loop");
  const first = page.locator(".result").first();
  await first.getByRole("link", { name: "Knots" }).waitFor();

  await tabTo(page, "Why this?");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").locator("table").waitFor();
  assert.ok(await page.evaluate(() => document.activeElement?.closest("dialog") !== null), "the focus is in the drawer");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement?.textContent === "Why this?");

  await page.keyboard.press("Shift+Tab");
  await tabTo(page, "Knots", "Shift+Tab");
  await page.keyboard.press("Enter");
  await settled(page);
  await page.locator(".passage-mark").waitFor();
  assert.ok(await page.evaluate(() => document.activeElement?.classList.contains("passage-mark")), "the focus is on the passage");
  await page.goBack();
  await page.locator(".result").first().waitFor();
});

test("the first Tab leads past the navigation", async (t) => {
  const page = await visit(t);
  await page.goto(`${BASE}/documents`);
  await settled(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "content");
});

/** Presses a key until the focus is on an element with this text. Every stop on the way must be visible. */
async function tabTo(page, text, key = "Tab") {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press(key);
    const found = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === null || element === document.body) return { text: "", isVisible: true, html: "" };
      const box = element.getBoundingClientRect();
      return { text: element.textContent, isVisible: box.width > 0 && box.height > 0, html: element.outerHTML.slice(0, 80) };
    });
    assert.ok(found.isVisible, `the focus is on something invisible: ${found.html}`);
    if (found.text === text) return;
  }
  assert.fail("the focus never came there");
}
