import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

let hear;
standIn({
  BroadcastChannel: class {
    addEventListener(_, listener) {
      hear = listener;
    }
    postMessage() {}
  },
});
const { knownCategories, knownSpaces, shared } = await load("known.ts");

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("data that all need is loaded once, and what comes late from an earlier round is ignored", async () => {
  const waiting = [];
  const names = shared(() => new Promise((resolve) => waiting.push(resolve)));
  names.renew();
  assert.equal(waiting.length, 0, "nothing needs it yet");
  names.need();
  names.need();
  assert.equal(waiting.length, 1);
  names.renew();
  waiting[1](["new"]);
  await tick();
  waiting[0](["old"]);
  await tick();
  assert.deepEqual(names.state.value, { data: ["new"], error: undefined, isLoading: false });
});

test("a failed load keeps what is known, and a cleared one comes to nothing", async () => {
  let answer = async () => ["one"];
  const names = shared(() => answer());
  names.need();
  await tick();
  const log = console.error;
  console.error = () => {};
  answer = async () => Promise.reject(new Error("away"));
  names.reload();
  await tick();
  console.error = log;
  assert.deepEqual(names.state.value.data, ["one"]);
  assert.equal(names.state.value.error?.message, "away");
  answer = async () => ["two"];
  names.reload();
  names.clear();
  await tick();
  assert.equal(names.state.value.data, undefined);
});

test("what was refused without a session is loaded with the next one", async () => {
  const answer = (status, data, code = 0) => new Response(JSON.stringify({ code, data }), { status });
  const me = { username: "keeper", role: "user", must_change_password: false, csrf_token: "token" };
  let isSignedIn = false;
  standIn({
    fetch: async (url) => {
      if (!isSignedIn) return answer(401, null, 1005);
      if (url.startsWith("/api/v1/auth/me")) return answer(200, me);
      return answer(200, url.startsWith("/api/v1/spaces") ? { items: [{ space: "default", title: "" }], next_offset: null } : { categories: [{ name: "Law" }] });
    },
  });
  knownSpaces.need();
  knownCategories.need();
  while (!knownSpaces.state.value.error || !knownCategories.state.value.error) await tick();
  isSignedIn = true;
  hear({ data: "session begun" });
  while (!knownSpaces.state.value.data || !knownCategories.state.value.data) await tick();
  assert.deepEqual(knownSpaces.state.value.data.map(({ space }) => space), ["default"]);
  assert.equal(knownCategories.state.value.error, undefined);
});
