// Conditions on metadata and other fields.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { BASE, WIDTHS, addText, checkAccessibility, checkWidth, once, shoot, visit } from "./browser.mjs";

before(async () => {
  await once("POST", "/spaces", { space: "dock", title: "Dock", read: "everyone" });
  for (const [title, depth] of [["Shallow basin", "3"], ["Deep basin", "12"], ["Basin without a figure", undefined]]) {
    const metadata = depth === undefined ? {} : { depth };
    await addText({ title, text: `The ${title.toLowerCase()} is dredged each year.`, metadata, space: "dock", force: true, upsert: true, source: `text:${title}` });
  }
});

/** Waits until the results have these titles, in any order. */
async function found(page, ...titles) {
  await page.waitForFunction(
    (titles) => {
      const links = document.querySelectorAll(".answer:not(.old, [aria-busy=true]) .result h2 a");
      const isNothing = titles.length === 0 && document.querySelector(".answer .empty") === null;
      return !isNothing && JSON.stringify([...links].map(({ textContent }) => textContent).sort()) === JSON.stringify(titles.sort());
    },
    titles,
  );
}

const ALL = ["Shallow basin", "Deep basin", "Basin without a figure"];

test("conditions narrow a search, stay in the address, and are removed again", async (t) => {
  const page = await visit(t);
  await page.goto(`${BASE}/?q=basin+dredged&space=dock`);
  await found(page, ...ALL);
  await page.getByRole("button", { name: "Add a condition" }).click();
  const row = page.getByRole("group", { name: "Condition 1" });
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Field");
  await row.getByLabel("Key").fill("depth");
  await row.getByLabel("Comparison").selectOption("is at least");
  await row.getByLabel("Value").fill("5");
  await found(page, "Deep basin");
  await page.getByRole("button", { name: "Filters (2)" }).waitFor();
  await checkAccessibility(page, "conditions");
  await shoot(page, "conditions");

  await page.reload();
  await found(page, "Deep basin");
  assert.equal(await row.getByLabel("Value").inputValue(), "5");
  await row.getByLabel("Comparison").selectOption("is not there");
  await found(page, "Basin without a figure");
  assert.equal(await row.getByLabel("Value").count(), 0);

  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.getByRole("group", { name: "Condition 2" }).getByLabel("Field").selectOption("Created at");
  await page.getByRole("group", { name: "Condition 2" }).getByLabel("Value").fill("2999-01-01");
  await found(page);
  await page.getByRole("group", { name: "Condition 2" }).getByRole("button", { name: "Remove the condition" }).click();
  await found(page, "Basin without a figure");
  await page.getByRole("group", { name: "Condition 1" }).getByRole("button", { name: "Remove the condition" }).click();
  await found(page, ...ALL);
  assert.ok(!page.url().includes("where"), page.url());
});

test("conditions fit a phone", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  const where = JSON.stringify([["metadata.depth", "lt", "5"], ["title", "prefix", "Shallow"], ["category", "ne", "Science"]]);
  await page.goto(`${BASE}/?q=basin&space=dock&where=${encodeURIComponent(where)}`);
  await found(page, "Shallow basin");
  await checkWidth(page, "conditions");
  await checkAccessibility(page, "conditions on a phone");
  await page.locator(".conditions").scrollIntoViewIfNeeded();
  await shoot(page, "conditions-phone");
});
