// What the tests of the console share: a real browser, people who sign in, and a watch over what must not happen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after } from "node:test";
import { chromium } from "playwright-core";

/** The server under test, and its admin. */
export const BASE = process.env.LKR_URL ?? "http://127.0.0.1:8080";
export const ADMIN = { username: "admin", password: process.env.LKR_ADMIN_PASSWORD ?? "" };

export const WIDTHS = { desktop: 1440, tablet: 768, phone: 375 };

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;

after(async () => browser?.close());

/**
 * A page of a browser of its own. When the test ends, it fails if the page reported an error or a violation of its content
 * security policy, or asked another host for anything.
 *
 * `statuses` are those of refusals that the test provokes: a browser reports them as errors.
 */
export async function visit(t, { width = WIDTHS.desktop, theme = "light", language = "en", statuses = [] } = {}) {
  browser ??= await chromium.launch({
    executablePath: process.env.LKR_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 812 : 900 },
    permissions: ["clipboard-read", "clipboard-write"],
    reducedMotion: "reduce",
  });
  await context.addCookies([
    { name: "lkr_theme", value: theme, url: BASE },
    { name: "lkr_language", value: language, url: BASE },
  ]);
  // Other tests may share the machine.
  context.setDefaultTimeout(Number(process.env.LKR_CONSOLE_TIMEOUT_MS ?? 90_000));
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`uncaught: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    const [, status] = message.text().match(/status of (\d+)/) ?? [];
    if (status === undefined || !statuses.includes(Number(status))) faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== BASE && url.protocol !== "data:") faults.push(`asked another host: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") faults.push(`a dialog: ${dialog.message()}`);
    void dialog.accept();
  });
  t.after(async () => {
    // A request that a test answers may still be under way.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
    assert.deepEqual(faults, [], "what the browser reported");
  });
  return page;
}

export async function signIn(page, { username, password }, path = "/login") {
  await page.goto(BASE + path);
  await page.getByLabel("Username", { exact: true }).or(page.getByLabel("用户名", { exact: true })).fill(username);
  await page.getByLabel("Password", { exact: true }).or(page.getByLabel("密码", { exact: true })).fill(password);
  await page.keyboard.press("Enter");
  await page.locator(".who").first().waitFor({ state: "attached" });
}

let token;

/** A request to the API as the admin, or with another token. */
export async function api(method, path, body, as) {
  const envelope = await envelopeOf(method, path, body, as);
  assert.equal(envelope.code, 0, `${method} ${path}: ${envelope.message}`);
  return envelope.data;
}

/** A request that makes something, unless it is there already: a server may be tried again. */
export async function once(method, path, body) {
  const { code, message } = await envelopeOf(method, path, body);
  assert.ok(code === 0 || code === CONFLICT, `${method} ${path}: ${message}`);
}

const CONFLICT = 1003;

async function envelopeOf(method, path, body, as) {
  as ??= token ??= await tokenOf(ADMIN);
  const response = await fetch(`${BASE}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${as}`, ...(body !== undefined && { "Content-Type": "application/json" }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.json();
}

export async function tokenOf({ username, password }) {
  const response = await fetch(`${BASE}/api/v1/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username, password }),
  });
  const { data, message } = await response.json();
  assert.ok(data, message);
  return data.access_token;
}

/** Adds a text and waits until it is searched. */
export async function addText(input, as) {
  const { task_id } = await api("POST", "/documents", input, as);
  return ended(task_id, as);
}

/** Sends a file as the admin. */
export async function upload(name, text) {
  const form = new FormData();
  form.set("force", "true");
  form.set("file", new Blob([text]), name);
  const headers = { Authorization: `Bearer ${await tokenOf(ADMIN)}` };
  const response = await fetch(`${BASE}/api/v1/documents/upload`, { method: "POST", headers, body: form });
  const { code, data, message } = await response.json();
  assert.equal(code, 0, `upload of ${name}: ${message}`);
  return data;
}

/** The task, once it has ended. */
export async function ended(taskId, as) {
  for (;;) {
    const task = await api("GET", `/documents/tasks/${taskId}`, undefined, as);
    if (task.status === "done" || task.status === "failed") return task;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Fails if axe finds anything on the page, of whatever impact. */
export async function checkAccessibility(page, name) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} ${target}: ${failureSummary}`));
  assert.deepEqual(told, [], `axe on ${name}`);
}

/** Fails if something is wider than the window. */
export async function checkWidth(page, name) {
  const wide = await page.evaluate(() => {
    const limit = document.documentElement.clientWidth;
    // What an element cuts off or scrolls does not widen the page.
    const isContained = (element) => {
      for (let above = element.parentElement; above !== null && above.localName !== "main"; above = above.parentElement) {
        if (getComputedStyle(above).overflowX !== "visible" && above.getBoundingClientRect().right <= limit + 1) return true;
      }
      return false;
    };
    return [...document.querySelectorAll("body *")]
      .filter((element) => element.getBoundingClientRect().right > limit + 1 && !isContained(element))
      .filter((element) => getComputedStyle(element).visibility !== "hidden" && !element.closest(".visually-hidden, .side:not(.open)"))
      .map((element) => `${element.tagName}.${element.className}`)
      .slice(0, 5);
  });
  assert.deepEqual(wide, [], `wider than the window on ${name}`);
}

/** Waits until nothing is loading. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector("h1") !== null && document.querySelector(".loading") === null);
}

/** Writes a screenshot into the folder of LKR_CONSOLE_SHOTS, if it names one. */
export async function shoot(page, name) {
  const folder = process.env.LKR_CONSOLE_SHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png` });
}
