// The queue of files, with a server that answers as the test says.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { load, standIn } from "./load.mjs";

const SPACE = { space: "default", isReplacing: true };
const REFUSAL = { code: 1001, message: "cannot be read", request_id: "r", data: null };

let queue;
let answers;
let sent;
/** The idempotency keys of what was sent. */
let keys;
/** Whether nothing is answered. */
let isHeld;
/** Tells each upload that all of it is sent. */
let reportSent;

beforeEach(async () => {
  answers = [];
  sent = [];
  keys = [];
  isHeld = false;
  reportSent = [];
  standIn({
    XMLHttpRequest: class {
      upload = {
        addEventListener: (_, listener) => this.#progress.push(listener),
      };
      #listeners = {};
      #progress = [];
      open(method, url) {
        this.url = `${method} ${url}`;
      }
      setRequestHeader(name, value) {
        if (name === "Idempotency-Key") keys.push(value);
      }
      addEventListener(name, listener) {
        this.#listeners[name] = listener;
      }
      getResponseHeader() {
        return null;
      }
      abort() {
        this.#listeners.abort();
      }
      send(form) {
        sent.push(form.get("source"));
        const report = () => this.#progress.forEach((tell) => tell({ loaded: 1, total: 1 }));
        reportSent.push(report);
        if (isHeld) return;
        const { status, body } = answers.shift() ?? { status: 202, body: { data: { task_id: `task ${sent.length}` } } };
        this.status = status;
        this.response = body;
        queueMicrotask(() => {
          report();
          this.#listeners.load();
        });
      }
    },
  });
  queue = await load("pages/add/queue.ts");
});

const file = (name, text = "text") => ({ file: new File([text], name.split("/").at(-1)), path: name });
const states = () => Object.fromEntries(queue.added.value.map(({ name, state }) => [name, state]));

/** Waits until so many requests were sent and answered. */
async function sentTimes(count) {
  while (sent.length < count) await turn();
  await turn();
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets no time pass where the queue waits. */
function hurry(t) {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (callback) => setTimeout(callback);
  t.after(() => (globalThis.setTimeout = setTimeout));
}

/** Waits until nothing of the queue waits or is being sent. */
async function sentAll() {
  while (queue.added.value.some(({ state }) => state === "waiting" || state === "sending")) {
    await turn();
  }
}

test("what cannot be read here is left out, and the rest is sent", async () => {
  queue.enqueue([file("a.md"), file("b.exe"), file("empty.txt", "")], SPACE);
  await sentAll();
  assert.deepEqual(states(), { "a.md": "working", "b.exe": "skipped", "empty.txt": "skipped" });
  assert.deepEqual(sent, ["file:a.md"]);
  assert.deepEqual(queue.progress.value, { total: 1, ended: 0, failed: 0 });
});

test("a folder that is chosen again takes the place of its failed rows", async () => {
  answers = [{ status: 400, body: REFUSAL }, { status: 202, body: { data: { task_id: "one" } } }];
  queue.enqueue([file("folder/a.md"), file("folder/b.md")], SPACE);
  await sentAll();
  assert.deepEqual(states(), { "folder/a.md": "failed", "folder/b.md": "working" });

  queue.enqueue([file("folder/a.md")], SPACE);
  await sentAll();
  assert.equal(queue.added.value.length, 2);
  assert.deepEqual(states(), { "folder/b.md": "working", "folder/a.md": "working" });
});

test("a file of the same path in another space has a row of its own", async () => {
  answers = [{ status: 400, body: REFUSAL }];
  queue.enqueue([file("a.md")], SPACE);
  await sentAll();
  queue.enqueue([file("a.md")], { ...SPACE, space: "other" });
  await sentAll();
  assert.deepEqual(queue.added.value.map(({ state }) => state), ["failed", "working"]);
});

test("a failed file is sent again, or dismissed", async () => {
  answers = [{ status: 400, body: REFUSAL }, { status: 400, body: REFUSAL }];
  queue.enqueue([file("a.md"), file("b.md")], SPACE);
  await sentAll();
  const [first, second] = queue.added.value;
  await queue.again(first);
  await sentAll();
  queue.dismiss(second.id);
  assert.deepEqual(states(), { "a.md": "working" });
});

test("texts with the same title stay apart", async () => {
  standIn({ fetch: async () => new Response(JSON.stringify({ code: 0, data: { task_id: `${Math.random()}` } }), { status: 202 }) });
  queue.enqueue([{ title: "note", text: "one" }], SPACE);
  queue.enqueue([{ title: "note", text: "two" }], SPACE);
  await sentAll();
  assert.equal(queue.added.value.length, 2);
});

test("what the browser could not open is told and not sent", async () => {
  queue.enqueue([{ unreadable: true, path: "folder/link.md" }, file("folder/a.md")], SPACE);
  await sentAll();
  assert.deepEqual(states(), { "folder/link.md": "skipped", "folder/a.md": "working" });
});

test("a file that is refused because the session has ended waits for the next one", async () => {
  answers = [{ status: 401, body: { ...REFUSAL, code: 1005 } }];
  queue.enqueue([file("a.md")], SPACE);
  await sentTimes(1);
  assert.deepEqual(sent, ["file:a.md"]);
  assert.equal(queue.isSending.value, true);
  queue.stop();
  await sentAll();
  assert.deepEqual(states(), { "a.md": "skipped" });
});

test("a file that meets a server which is away stays in the queue", async () => {
  answers = [{ status: 502, body: null }];
  queue.enqueue([file("a.md")], SPACE);
  await sentTimes(1);
  while (queue.added.value[0].tries === undefined) await turn();
  assert.deepEqual(states(), { "a.md": "sending" });
  assert.equal(queue.added.value[0].sent, 0);
  queue.stop();
  await sentAll();
  assert.deepEqual(states(), { "a.md": "skipped" });
});

test("a file whose answer was lost is sent again under the same key, and under another one where a person asks", async (t) => {
  hurry(t);
  answers = [{ status: 503, body: null }, { status: 0, body: null }, { status: 504, body: null }];
  queue.enqueue([file("a.md")], SPACE);
  await sentAll();
  // A proxy that waited in vain has sent the file: it is not sent again by itself.
  assert.deepEqual(states(), { "a.md": "failed" });
  assert.equal(sent.length, 3);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
  await queue.again(queue.added.value[0]);
  await sentAll();
  assert.deepEqual(states(), { "a.md": "working" });
  assert.notEqual(keys[3], keys[0]);
});

test("a file that is refused for the token of an earlier session is sent again with that of the next one, once", async () => {
  const refusal = { status: 403, body: { ...REFUSAL, code: 1006 } };
  const me = { username: "keeper", role: "user", must_change_password: false, csrf_token: "next" };
  standIn({ fetch: async () => new Response(JSON.stringify({ code: 0, data: me })) });
  answers = [refusal];
  queue.enqueue([file("a.md")], SPACE);
  await sentAll();
  assert.deepEqual(states(), { "a.md": "working" });
  assert.equal(sent.length, 2);
  answers = [refusal];
  queue.enqueue([file("b.md")], SPACE);
  await sentAll();
  assert.deepEqual(states(), { "a.md": "working", "b.md": "failed" });
  assert.equal(sent.length, 3);
});

test("what is not sent can be stopped, and sent again", async () => {
  isHeld = true;
  const names = ["a.md", "b.md", "c.md", "d.md", "e.md"];
  queue.enqueue(names.map((name) => file(name)), SPACE);
  await sentTimes(3);
  assert.equal(sent.length, 3);
  // What the server has got goes on.
  reportSent[1]();
  queue.stop();
  while (queue.added.value.filter(({ state }) => state === "skipped").length < 4) await turn();
  assert.deepEqual(queue.added.value.map(({ skipped }) => skipped), names.map((name) => (name === "b.md" ? undefined : "stopped")));
  assert.equal(states()["b.md"], "sending");
  assert.equal(queue.isSending.value, false);
  assert.deepEqual(queue.progress.value, { total: 1, ended: 0, failed: 0 });
  isHeld = false;
  await queue.again(queue.added.value[0]);
  await sentTimes(4);
  while (states()["a.md"] !== "working") await turn();
  // It may have arrived before it was stopped.
  assert.equal(keys[3], keys[0]);
});
