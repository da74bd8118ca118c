// Sessions that begin, end, or cannot be told while pages are open.
import assert from "node:assert/strict";
import { before, beforeEach, test } from "node:test";
import { ADMIN, BASE, addText, api, checkAccessibility, once, settled, shoot, signIn, tokenOf, visit } from "./browser.mjs";

const KEEPER = { username: "keeper", password: "a password of keeper" };
const NEXT = "another password of keeper";

/** A document that nobody else may read. */
let hiddenId;

before(async () => {
  await once("POST", "/users", { ...KEEPER, must_change_password: false });
  const token = await tokenOf(KEEPER);
  await addText({ title: "Lamp", text: "The lamp is lit at dusk.", force: true }, token);
  await once("POST", "/spaces", { space: "cellar", read: "members" });
  await once("PUT", "/spaces/cellar/members/user:keeper", { role: "writer" });
  hiddenId = (await addText({ title: "Cellar", text: "The lamp of the cellar.", space: "cellar", force: true }, token)).doc_id;
});

// Each test begins with the password above, and without sessions.
beforeEach(async () => {
  await api("POST", "/users/keeper/password", { new_password: NEXT });
  const token = await tokenOf({ ...KEEPER, password: NEXT });
  await api("POST", "/auth/password", { current_password: NEXT, new_password: KEEPER.password }, token);
});

/** Ends the account's sessions, as an admin does. */
async function endSessions() {
  await api("PATCH", "/users/keeper", { disabled: true });
  await api("PATCH", "/users/keeper", { disabled: false });
}

async function signInAgain(page, password = KEEPER.password) {
  await page.getByText("Your session has ended.").waitFor();
  await page.getByLabel("Username", { exact: true }).fill(KEEPER.username);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.keyboard.press("Enter");
  await page.getByText("Your session has ended.").waitFor({ state: "detached" });
}

test("a wrong current password is told beside its field, and the session goes on", async (t) => {
  const page = await visit(t, { statuses: [401] });
  await signIn(page, KEEPER);
  await page.goto(`${BASE}/account`);
  await page.getByLabel("Current password").fill("not the password");
  await page.getByLabel("New password", { exact: true }).fill(NEXT);
  await page.getByLabel("New password again").fill(NEXT);
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("The current password is wrong.").waitFor();
  await checkAccessibility(page, "a wrong current password");
  await page.getByLabel("Current password").fill(KEEPER.password);
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("The password is changed.").first().waitFor();
});

test("what was typed is there after the session has ended and the person has signed in again", async (t) => {
  const page = await visit(t, { statuses: [401] });
  await signIn(page, KEEPER);
  await page.goto(`${BASE}/documents`);
  await page.getByRole("link", { name: "Lamp" }).first().click();
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit" });
  await editor.getByLabel("Source").fill("the tower");
  await endSessions();
  await editor.getByRole("button", { name: "Save" }).click();
  await page.getByText("Your session has ended.").waitFor();
  await page.waitForFunction(() => document.activeElement?.matches("main.entrance input"));
  await checkAccessibility(page, "the login after a session");
  await shoot(page, "session-ended");
  await signInAgain(page);
  assert.equal(await editor.getByLabel("Source").inputValue(), "the tower");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  await page.locator(".details").getByText("the tower").waitFor();
});

test("a page that comes back after the session's natural end asks for a login, and keeps what was typed", async (t) => {
  const page = await visit(t, { statuses: [401] });
  await page.addInitScript(() => {
    // Otherwise a page of a browser without windows is always seen.
    let state = "visible";
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => state });
    window.turn = (next) => {
      state = next;
      document.dispatchEvent(new Event("visibilitychange"));
    };
  });
  await signIn(page, KEEPER);
  await page.goto(`${BASE}/documents/${hiddenId}`);
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit" });
  await editor.getByLabel("Source").fill("the cellar");
  await page.evaluate(() => window.turn("hidden"));
  await page.context().clearCookies({ name: "lkr_session" });
  await page.evaluate(() => window.turn("visible"));
  await signInAgain(page);
  assert.equal(await editor.getByLabel("Source").inputValue(), "the cellar");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  await page.locator(".details").getByText("the cellar", { exact: true }).waitFor();
});

test("what was typed is there after a password that an admin has given was changed", async (t) => {
  const page = await visit(t, { statuses: [401, 403] });
  await signIn(page, KEEPER);
  await page.goto(`${BASE}/documents/${hiddenId}`);
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit" });
  await editor.getByLabel("Title").fill("The hidden lamp");
  await api("POST", "/users/keeper/password", { new_password: NEXT });
  await editor.getByRole("button", { name: "Save" }).click();
  await signInAgain(page, NEXT);
  await page.getByLabel("Current password").fill(NEXT);
  await page.getByLabel("New password", { exact: true }).fill(KEEPER.password);
  await page.getByLabel("New password again").fill(KEEPER.password);
  await checkAccessibility(page, "a change of the password before a page that is kept");
  await page.getByRole("button", { name: "Change the password" }).click();
  await editor.waitFor();
  assert.equal(await editor.getByLabel("Title").inputValue(), "The hidden lamp");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "The hidden lamp" }).waitFor();
});

test("another person's login loads a page anew that has changes", async (t) => {
  const first = await visit(t);
  await signIn(first, KEEPER);
  await first.goto(`${BASE}/documents/${hiddenId}`);
  await first.getByRole("button", { name: "Edit" }).click();
  await first.getByRole("dialog", { name: "Edit" }).getByLabel("Source").fill("nowhere");
  const asked = [];
  first.on("dialog", (dialog) => asked.push(dialog.type()));
  const second = await first.context().newPage();
  await second.goto(BASE);
  await settled(second);
  await second.evaluate(async ({ username, password }) => {
    const body = JSON.stringify({ username, password, cookie: true });
    await fetch("/api/v1/auth/login", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    new BroadcastChannel("lkr").postMessage("session begun");
  }, ADMIN);
  await first.locator(".who").filter({ hasText: ADMIN.username }).waitFor();
  await first.getByRole("dialog", { name: "Edit" }).waitFor({ state: "detached" });
  assert.deepEqual(asked, []);
});

test("files wait for the login where the session ends amid an upload", async (t) => {
  const page = await visit(t, { statuses: [401] });
  await signIn(page, KEEPER);
  await page.getByRole("link", { name: "Add", exact: true }).click();
  await page.locator(".drop").waitFor();
  await endSessions();
  const files = ["one", "two", "three", "four"].map((name) => ({
    name: `${name}.md`,
    mimeType: "text/markdown",
    buffer: Buffer.from(`# Watch ${name}\n\nThe ${name} watch begins.`),
  }));
  await page.locator(".drop input[type=file]").first().setInputFiles(files);
  await signInAgain(page);
  const rows = page.locator(".queue li");
  for (const { name } of files) await rows.filter({ hasText: name }).getByText(/Done|Duplicate/).waitFor();
});

test("other tabs follow a login and a change of the password", async (t) => {
  const first = await visit(t);
  await first.goto(BASE);
  await settled(first);
  const second = await first.context().newPage();
  await signIn(second, KEEPER);
  await first.locator(".who").filter({ hasText: KEEPER.username }).waitFor();
  await first.getByLabel("Search the documents").fill("lamp");
  await first.locator(".result").first().waitFor();

  await second.goto(`${BASE}/account`);
  await second.getByLabel("Current password").fill(KEEPER.password);
  await second.getByLabel("New password", { exact: true }).fill(NEXT);
  await second.getByLabel("New password again").fill(NEXT);
  const followed = first.waitForResponse("**/api/v1/auth/me");
  await second.getByRole("button", { name: "Change the password" }).click();
  await second.getByText("The password is changed.").first().waitFor();
  await followed;
  await first.getByLabel("Search the documents").fill("dusk");
  await first.waitForURL(/q=dusk/);
  await first.locator(".answer:not(.old)[aria-busy=false] .result").first().waitFor();
  assert.equal(await first.locator(".error-message").count(), 0);
});

test("a page whose server does not tell who is signed in asks again, and takes nobody for anonymous", async (t) => {
  const page = await visit(t, { statuses: [503] });
  page.on("requestfailed", () => {});
  await signIn(page, KEEPER);
  let isAway = true;
  await page.route("**/api/v1/auth/me", (route) => (isAway ? route.fulfill({ status: 503, body: "" }) : route.continue()));
  await page.goto(`${BASE}/documents`);
  await page.locator(".error-message").waitFor();
  assert.equal(await page.getByRole("link", { name: "Sign in" }).count(), 0);
  isAway = false;
  // The page asks again by itself.
  await page.locator(".who").filter({ hasText: KEEPER.username }).waitFor();
});

test("signing out is told where it fails, and is done where the session has ended already", async (t) => {
  const page = await visit(t, { statuses: [401, 503] });
  await signIn(page, KEEPER);
  await page.route("**/api/v1/auth/logout", (route) => route.fulfill({ status: 503, body: "" }));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator(".toast").getByText("The server cannot be reached.").waitFor();
  await page.unroute("**/api/v1/auth/logout");
  await endSessions();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Sign in", exact: true }).waitFor();
});

test("a page whose scripts are no longer there is told", async (t) => {
  const page = await visit(t, { statuses: [404] });
  await page.goto(BASE);
  await settled(page);
  await page.route("**/console/administration-*.js", (route) => route.fulfill({ status: 404, body: "" }));
  await page.getByRole("link", { name: "Spaces" }).click();
  await page.getByText("This page could not be loaded").first().waitFor();
  await checkAccessibility(page, "a page that could not be loaded");
  await page.unroute("**/console/administration-*.js");
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("heading", { name: "Spaces" }).waitFor();
});

test("a page whose server was away behind a proxy is loaded by itself when it is back", async (t) => {
  const page = await visit(t, { statuses: [502] });
  let isAway = true;
  await page.route("**/api/v1/spaces?*", (route) => (isAway ? route.fulfill({ status: 502, body: "Bad Gateway" }) : route.continue()));
  await page.goto(`${BASE}/spaces`);
  await page.getByText("The server cannot be reached.").waitFor();
  isAway = false;
  await page.getByRole("link", { name: "default" }).waitFor();
  assert.equal(await page.locator(".error-message").count(), 0);
});
