// The first minutes of a person who has never seen lkr: from the password in a file to a cited answer.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ADMIN, BASE, checkAccessibility, settled, visit } from "./browser.mjs";

const PDF = process.env.LKR_CONSOLE_PDF;

test("a newcomer signs in, adds files, and gets a cited answer", async (t) => {
  const page = await visit(t, { statuses: [400, 401] });
  await page.goto(BASE);
  await page.getByText("Nothing is here yet").waitFor();
  await page.getByRole("link", { name: "Sign in", exact: true }).click();

  await page.getByLabel("Username").fill("admin");
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The username or the password is wrong, or the account is disabled.").waitFor();
  await page.getByLabel("Password").fill((await readFile(process.env.LKR_INITIAL_PASSWORD_FILE, "utf8")).trim());
  await page.getByRole("button", { name: "Sign in" }).click();

  await page.getByRole("heading", { name: "Choose a new password" }).waitFor();
  await checkAccessibility(page, "the change of the first password");
  await page.getByLabel("Current password").fill((await readFile(process.env.LKR_INITIAL_PASSWORD_FILE, "utf8")).trim());
  await page.getByLabel("New password", { exact: true }).fill(ADMIN.password);
  await page.getByLabel("New password again").fill("something else");
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("The two passwords differ.").waitFor();
  await page.getByLabel("New password again").fill(ADMIN.password);
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("The password is changed.").first().waitFor();

  await page.getByRole("link", { name: "Add documents" }).click();
  await page.getByRole("heading", { name: "Add documents" }).waitFor();
  const files = [
    { name: "tides.md", mimeType: "text/markdown", buffer: Buffer.from(TIDES) },
    { name: "picture.png", mimeType: "image/png", buffer: Buffer.from("no picture") },
    { name: "broken.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\nnothing follows") },
  ];
  await page.locator("input[type=file]").first().setInputFiles(files);
  const rows = page.locator(".queue li");
  await rows.filter({ hasText: "tides.md" }).getByText("Done").waitFor();
  await rows.filter({ hasText: "picture.png" }).getByText("Left out").waitFor();
  await rows.filter({ hasText: "broken.pdf" }).getByText("Failed").waitFor();
  assert.notEqual(await rows.filter({ hasText: "broken.pdf" }).locator(".field-error").textContent(), "");
  await checkAccessibility(page, "the files that were added");

  // The same text once more is told as a duplicate, with the way to the earlier document.
  await page.locator("input[type=file]").first().setInputFiles([{ ...files[0], name: "tides-again.md" }]);
  await rows.filter({ hasText: "tides-again.md" }).getByText("Duplicate").waitFor();
  await rows.filter({ hasText: "tides-again.md" }).getByRole("link", { name: "the earlier document" }).waitFor();
  if (PDF) {
    await page.locator("input[type=file]").first().setInputFiles(PDF);
    await rows.filter({ hasText: PDF.split("/").at(-1) }).getByText("Done").waitFor();
  }

  await page.getByRole("link", { name: "Search", exact: true }).click();
  await page.getByLabel("Search the documents").pressSequentially("why are there two tides a day", { delay: 20 });
  const first = page.locator(".result").first();
  await first.getByRole("link", { name: "tides" }).waitFor();
  assert.match(page.url(), /\?q=why\+are\+there\+two\+tides\+a\+day/);
  await first.locator("mark").first().waitFor();

  await first.getByRole("button", { name: "Copy as citation" }).click();
  await page.getByText("The citation is copied.").waitFor();
  const citation = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(citation, /^> /);
  assert.match(citation, new RegExp(`\\[tides.*\\]\\(${BASE}/documents/[0-9a-f]{32}\\?at=\\d+-\\d+`));

  await first.getByRole("button", { name: "Why this?" }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Chunks, words").waitFor();
  await checkAccessibility(page, "how a passage was found");
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Summarise" }).click();
  const marker = page.locator(".summary .marker").first();
  await marker.waitFor();
  await marker.click();
  assert.match(await page.evaluate(() => document.activeElement?.id ?? ""), /^result-\d+$/);

  await first.getByRole("link", { name: "tides" }).click();
  await settled(page);
  const marked = page.locator(".passage-mark").first();
  await marked.waitFor();
  assert.match(await marked.textContent(), /second bulge/);
  await page.reload();
  await page.locator(".passage-mark").first().waitFor();
  await checkAccessibility(page, "a document at a passage");

  if (PDF) await readPdf(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Sign in", exact: true }).waitFor();
});

/** A citation from a PDF file leads to the page itself, with the passage marked. */
async function readPdf(page) {
  await page.goto(`${BASE}/?q=introduction`);
  const result = page.locator(".result").filter({ hasText: PDF.split("/").at(-1) }).first();
  await result.getByText(/^p\. \d+$/).waitFor();
  await result.locator("h2 a").click();
  await settled(page);
  const image = page.locator(".page-image img");
  await image.waitFor();
  await page.waitForFunction(() => document.querySelector(".page-image img")?.naturalWidth > 0);
  const [box, frame] = [page.locator(".page-box").first(), page.locator(".page-image")];
  await box.waitFor();
  const [inner, outer] = [await box.boundingBox(), await frame.boundingBox()];
  assert.ok(inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width + 1, "the mark is on the page");
  await checkAccessibility(page, "a page of a PDF file");
  await page.getByRole("tab", { name: "Text" }).click();
  await page.locator(".passage-mark").first().waitFor();
}

const TIDES = `# Tides

The sea rises and falls. This is called the tide.

## The first bulge

The moon draws the water that is nearest to it, and the sea rises below the moon.

## The second bulge

There are two tides a day, because a second bulge stands on the far side of the earth: there the moon draws the water less
than it draws the earth below it, so the water stays behind.
`;
