import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { PAGE_SIZE, addChange, merged } = await load("pages/task_changes.ts");

const time = (n) => `2026-01-01T00:00:00.${String(n).padStart(6, "0")}Z`;
const task = (n, status, changed = n) => ({ task_id: `t${n}`, status, created_at: time(n), updated_at: time(changed) });
const ids = (tasks) => tasks.map(({ task_id }) => task_id);

test("a task that was accepted earlier and fails now is in the list of failed ones", () => {
  const changed = new Map();
  addChange(changed, task(2, "failed", 90));
  assert.deepEqual(ids(merged([task(5, "failed"), task(1, "failed")], changed, true, "failed")), ["t5", "t2", "t1"]);
  assert.deepEqual(ids(merged([task(5, "failed")], changed, false, "failed")), ["t5"], "another page is what was listed");
});

test("a full page has no tasks of the next one", () => {
  const listed = Array.from({ length: PAGE_SIZE }, (_, n) => task(1000 - n, "done"));
  const changed = new Map();
  addChange(changed, task(3, "done", 2000));
  addChange(changed, task(1001, "done", 2001));
  assert.deepEqual(ids(merged(listed, changed, true, undefined)), ["t1001", ...ids(listed)]);
});

test("what is kept of thousands of events is bounded, and is what changed last", () => {
  const changed = new Map();
  for (let n = 0; n < 20_000; n++) addChange(changed, task(n, "running"));
  addChange(changed, task(19_000, "done", 30_000));
  addChange(changed, task(19_000, "running", 20_000));
  assert.ok(changed.size <= 500 && changed.size >= 2 * PAGE_SIZE, String(changed.size));
  assert.equal(changed.get("t19000")?.status ?? "done", "done", "an older state changes nothing");
  assert.ok(changed.has("t19999"));
});
