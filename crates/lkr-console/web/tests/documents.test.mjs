// The list of documents: what it names, and deleting many at once.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, api, checkAccessibility, checkWidth, once, shoot, signIn, tokenOf, visit } from "./browser.mjs";

const WRITER = { username: "writer", password: "a password of writer" };

before(async () => {
  await once("POST", "/spaces", { space: "pier", title: "The old pier", read: "everyone", write: "accounts" });
  await api("PATCH", "/spaces/pier", { title: "The old pier" });
  await once("POST", "/users", { ...WRITER, must_change_password: false });
});

/** Adds documents with these titles, in place of those that an earlier run left. */
async function fill(space, titles, as) {
  const where = { and: [{ field: "space", eq: space }] };
  const { documents } = await api("POST", "/documents/delete", { where });
  if (documents > 0) {
    const { task_id } = await api("POST", "/documents/delete", { where, dry_run: false });
    for (;;) {
      const { status } = await api("GET", `/documents/tasks/${task_id}`);
      if (status === "done") break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  for (const title of titles) await addText({ title, text: `A text about ${title}.`, space, force: true }, as);
}

const titles = async () => (await api("GET", "/documents?space=pier&limit=100")).items.map(({ title }) => title).sort();

test("selected documents are deleted after a question that names their number", async (t) => {
  await fill("pier", ["Planks", "Piles", "Railings", "Lamps"]);
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents?space=pier`);
  await page.getByLabel(/Select .Planks/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Delete the selected…" }).count(), 0);
  await page.getByLabel(/Select .Planks/).check();
  await page.getByLabel(/Select .Lamps/).check();
  await page.getByText("2 selected").waitFor();
  await checkAccessibility(page, "documents that are selected");
  await shoot(page, "selected");
  await page.getByRole("button", { name: "Delete the selected…" }).click();
  const question = page.getByRole("dialog", { name: "Delete 2 documents?" });
  await question.waitFor();
  await checkAccessibility(page, "the question before deleting many");
  await question.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await titles(), ["Lamps", "Piles", "Planks", "Railings"]);

  await page.getByRole("button", { name: "Delete the selected…" }).click();
  await question.getByRole("button", { name: "Delete 2" }).click();
  await page.getByText("2 documents were deleted.").waitFor();
  await page.getByLabel(/Select .Planks/).waitFor({ state: "detached" });
  assert.deepEqual(await titles(), ["Piles", "Railings"]);
});

test("all documents of a filter are deleted, by the beginning of their titles too", async (t) => {
  await fill("pier", ["Boat one", "boat two", "Harbour"]);
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/documents?space=pier&q=BOAT`);
  await page.getByLabel(/选择 .*boat two/).waitFor();
  await checkWidth(page, "the list of documents");
  await page.getByRole("button", { name: "删除所有符合条件的文档…" }).click();
  const question = page.getByRole("dialog", { name: "删除 2 个文档？" });
  await question.waitFor();
  await shoot(page, "delete-phone");
  await question.getByRole("button", { name: "删除 2 个" }).click();
  await page.getByText("已删除 2 个文档。").waitFor();
  assert.deepEqual(await titles(), ["Harbour"]);
});

test("documents of others are told to stay, and stay", async (t) => {
  await fill("pier", ["Of the admin"]);
  await addText({ title: "Of the writer", text: "A text.", space: "pier", force: true }, await tokenOf(WRITER));
  const page = await visit(t);
  await signIn(page, WRITER);
  await page.goto(`${BASE}/documents?space=pier`);
  await page.getByLabel("Select all on this page").check();
  await page.getByText("2 selected").waitFor();
  await page.getByRole("button", { name: "Delete the selected…" }).click();
  const question = page.getByRole("dialog", { name: "Delete 1 document?" });
  await question.getByText("1 more document is selected that you may not delete; it stays.").waitFor();
  await question.getByRole("button", { name: "Delete 1", exact: true }).click();
  await page.getByText("1 document was deleted.").waitFor();
  assert.deepEqual(await titles(), ["Of the admin"]);
});

test("a space is named by its title, with its name as a tooltip", async (t) => {
  await fill("pier", ["Kelp"]);
  const page = await visit(t);
  await page.goto(`${BASE}/documents?space=pier`);
  await page.locator("tbody").getByText("The old pier").waitFor();
  assert.equal(await page.getByLabel(/Select .Kelp/).count(), 0, "who is not signed in deletes nothing");
  await page.goto(`${BASE}/?q=kelp&space=pier`);
  const badge = page.locator(".result .badge").first();
  await badge.getByText("The old pier").waitFor();
  assert.equal(await badge.locator("bdi").getAttribute("title"), "pier");
  await badge.click();
  await page.getByRole("heading", { name: "The old pier" }).waitFor();

  // Another title is shown at once where the person gave it.
  const admin = await visit(t);
  await signIn(admin, ADMIN);
  await admin.getByLabel("Search the documents").fill("kelp");
  await admin.locator(".result .badge").first().getByText("The old pier").click();
  await admin.getByRole("button", { name: "Edit" }).first().click();
  await admin.getByRole("dialog").getByLabel("Title").fill("The new pier");
  await admin.getByRole("button", { name: "Save" }).click();
  await admin.getByRole("heading", { name: "The new pier" }).waitFor();
  await admin.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Documents" }).click();
  await admin.locator("tbody").getByText("The new pier").first().waitFor();
});

test("a title is found while it is typed with pauses between its words", async (t) => {
  await fill("pier", ["Tide tables", "Tidewater"]);
  const page = await visit(t);
  await page.goto(`${BASE}/documents?space=pier`);
  const field = page.getByLabel("Beginning of the title");
  await field.pressSequentially("Tide ");
  await page.waitForURL(/q=Tide/);
  await field.pressSequentially("tables");
  assert.equal(await field.inputValue(), "Tide tables");
  await page.getByRole("link", { name: "Tidewater" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Tide tables" }).waitFor();
});

test("a page that is turned twice at once shows what it says, and one that became empty gives way to the one before", async (t) => {
  await fill("pier", ["Row"]);
  const [row] = (await api("GET", "/documents?space=pier")).items;
  const rows = (first, count) => Array.from({ length: count }, (_, at) => ({ ...row, doc_id: `${first + at}`, title: `Row ${first + at}` }));
  let last = rows(100, 1);
  let isPressed;
  // The second page comes when both presses are over.
  const pressed = new Promise((resolve) => (isPressed = resolve));
  const page = await visit(t);
  await page.route("**/api/v1/documents?*", async (route) => {
    const offset = new URL(route.request().url()).searchParams.get("offset");
    const data = {
      null: { items: rows(0, 50), next_offset: "second" },
      second: { items: rows(50, 50), next_offset: last.length > 0 ? "third" : null },
      third: { items: last, next_offset: null },
    }[offset];
    if (offset === "second") await pressed;
    await route.fulfill({ json: { code: 0, message: "ok", request_id: "", data } });
  });
  await page.goto(`${BASE}/documents?space=pier`);
  await page.getByRole("link", { name: "Row 49", exact: true }).waitFor();
  await page.getByRole("button", { name: "Next" }).dblclick();
  isPressed();
  await page.getByRole("link", { name: "Row 50", exact: true }).waitFor();
  await page.getByText("Page 2").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("link", { name: "Row 100", exact: true }).waitFor();
  await page.getByText("Page 3").waitFor();
  last = [];
  // The list is loaded again when a document is added.
  await addText({ title: "Another row", text: "A text.", space: "pier", force: true });
  await page.getByText("Page 2").waitFor();
  await page.getByRole("link", { name: "Row 50", exact: true }).waitFor();
});
