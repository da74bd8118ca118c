import assert from "node:assert/strict";
import { test } from "node:test";
import { load, standIn } from "./load.mjs";

standIn();
const { shortTime } = await load("i18n/format.ts");

test("a time is never told as further away than it is, and days are those of the calendar", () => {
  const now = new Date(2026, 10, 30, 10, 0).getTime();
  const ago = (hours) => shortTime(new Date(now - hours * 3_600_000).toISOString(), now);
  assert.equal(ago(59.99 / 60), "59 minutes ago");
  assert.equal(ago(23.99), "23 hours ago");
  assert.equal(ago(25), "yesterday");
  assert.equal(ago(34.5), "2 days ago");
  assert.equal(ago(0), "now");
});

test("the day after a change of the clock follows the day before it, far east of Greenwich too", (t) => {
  const zone = process.env.TZ;
  t.after(() => (zone === undefined ? delete process.env.TZ : (process.env.TZ = zone)));
  process.env.TZ = "Pacific/Auckland";
  // The clock goes forward on 27 September 2026 and back on 5 April 2026.
  for (const [month, day] of [[8, 27], [8, 28], [3, 5], [3, 6]]) {
    const now = new Date(2026, month, day, 23, 30);
    const before = new Date(2026, month, day - 1, 18, 0);
    assert.equal(shortTime(before.toISOString(), now.getTime()), "yesterday", now.toISOString());
  }
});
