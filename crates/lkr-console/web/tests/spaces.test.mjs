// Two people in different spaces: what one may not see is nowhere.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { BASE, addText, api, once, settled, signIn, tokenOf, visit } from "./browser.mjs";

const ANNA = { username: "anna", password: "a password of anna" };
const BERT = { username: "bert", password: "a password of bert" };
const SECRET = "quokka";

let secretDocument;
let secretTask;

before(async () => {
  for (const { username, password } of [ANNA, BERT]) {
    await once("POST", "/users", { username, password, must_change_password: false });
  }
  for (const [space, member] of [["burrow", "anna"], ["nest", "bert"]]) {
    await once("POST", "/spaces", { space, title: `The ${space}`, read: "members" });
    await api("PUT", `/spaces/${space}/members/user:${member}`, { role: "writer" });
  }
  const anna = await tokenOf(ANNA);
  const task = await addText({ title: `About the ${SECRET}`, text: `The ${SECRET} sleeps by day.`, source: `secret:${SECRET}`, space: "burrow" }, anna);
  secretDocument = task.doc_id;
  secretTask = task.task_id;
  await addText({ title: "About the magpie", text: "The magpie builds a nest.", space: "nest" }, await tokenOf(BERT));
});

test("another's space shows nowhere, not even while a document is added to it", async (t) => {
  const [anna, bert] = [await visit(t), await visit(t, { statuses: [404] })];
  await signIn(anna, ANNA);
  await signIn(bert, BERT);
  await anna.goto(`${BASE}/?q=${SECRET}`);
  await anna.locator(".result").first().getByText(SECRET).first().waitFor();

  const seen = [];
  bert.on("response", async (response) => {
    if (response.url().includes("/api/")) seen.push(await response.text().catch(() => ""));
  });
  await bert.goto(`${BASE}/tasks`);
  await settled(bert);
  await addText({ title: `More of the ${SECRET}`, text: `The ${SECRET} eats leaves.`, space: "burrow" }, await tokenOf(ANNA));
  for (const path of [`/?q=sleeps`, `/?q=${SECRET}`, "/documents", "/spaces", "/tasks", "/add"]) {
    await bert.goto(BASE + path);
    await settled(bert);
    const text = await bert.evaluate(() => document.querySelector("main")?.textContent ?? "");
    assert.ok(!text.replaceAll(`${SECRET}`, path.includes(SECRET) ? "" : SECRET).includes("burrow"), path);
    assert.ok(!text.includes(`About the ${SECRET}`), path);
  }
  for (const path of [`/documents/${secretDocument}`, `/tasks/${secretTask}`, "/spaces/burrow"]) {
    await bert.goto(BASE + path);
    await bert.getByText("There is no such page").first().waitFor();
  }
  const answers = seen.join("\n").replaceAll(`"query":"${SECRET}"`, "");
  assert.ok(!answers.includes(SECRET) && !answers.includes("burrow"), "in an answer to the other's browser");
});

test("a page that an account has no right to says so, and a session that ends asks for a login", async (t) => {
  const page = await visit(t, { statuses: [401] });
  await signIn(page, BERT);
  await page.goto(`${BASE}/admin/users`);
  await page.getByText("This is not open to you").first().waitFor();
  await page.goto(`${BASE}/documents`);
  await settled(page);
  await api("PATCH", "/users/bert", { disabled: true });
  // The stream of task events ends with the account, which the page notices by itself.
  await page.getByText("Your session has ended.").waitFor();
  await api("PATCH", "/users/bert", { disabled: false });
  await page.getByLabel("Username").fill(BERT.username);
  await page.getByLabel("Password").fill(BERT.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Documents" }).waitFor();
});

test("a reader is offered nothing that would be refused", async (t) => {
  await api("PUT", "/spaces/nest/members/user:anna", { role: "reader" });
  const task = await addText({ title: "About the wren", text: "The wren is small.", space: "nest", force: true }, await tokenOf(BERT));
  const names = ["Cancel", "Try again", "Delete the record"];
  const offered = async (page) => {
    await page.goto(`${BASE}/tasks/${task.task_id}`);
    await page.getByRole("heading", { name: "About the wren" }).waitFor();
    await page.getByRole("link", { name: "The nest" }).waitFor();
    const counts = await Promise.all(names.map((name) => page.getByRole("button", { name }).count()));
    return names.filter((_, at) => counts[at] > 0);
  };
  const [reader, writer] = [await visit(t), await visit(t)];
  await signIn(reader, ANNA);
  await signIn(writer, BERT);
  assert.deepEqual(await offered(reader), []);
  assert.deepEqual(await offered(writer), ["Delete the record"]);

  const add = (page) => page.getByRole("main").getByRole("link", { name: "Add documents" });
  for (const [page, count] of [[reader, 0], [writer, 1]]) {
    await page.goto(`${BASE}/spaces/nest`);
    await page.getByRole("heading", { name: "The nest" }).waitFor();
    await page.locator(".facts").waitFor();
    assert.equal(await add(page).count(), count);
  }
  await reader.goto(`${BASE}/add?space=nest`);
  await reader.getByText(/You may not add to the space .nest.\. Choose another one\./).waitFor();
  await writer.goto(`${BASE}/add?space=nest`);
  await writer.getByText("Only members can read this space.").waitFor();
  assert.equal(await writer.getByText("You may not add").count(), 0);
});
