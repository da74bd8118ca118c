import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { editedOf, parseMetadata } = await load("pages/document/metadata.ts");

test("metadata comes back from its lines as it was, whatever its keys and values are", () => {
  const metadata = { port: "7", url: "https://example.org/?a=b", empty: "", "two words": "x y", "a=b": "c", lines: "one\ntwo=2", padded: " x", " key": "x", carriage: "a\rb" };
  const edited = editedOf({ ...metadata, raw_file_path: "secret" });
  assert.equal(edited.lines, "port=7\nurl=https://example.org/?a=b\nempty=\ntwo words=x y");
  assert.deepEqual(edited.kept.map(([key]) => key), ["a=b", "lines", "padded", " key", "carriage"]);
  assert.deepEqual(parseMetadata(edited), { metadata });
  const proto = JSON.parse('{"__proto__": "x"}');
  assert.deepEqual(Object.entries(parseMetadata(editedOf(proto)).metadata), [["__proto__", "x"]]);
});

test("a line that is no entry is named, and one that is written takes the place of what was kept", () => {
  assert.deepEqual(parseMetadata({ lines: "a=1\n\nport", kept: [] }), { fault: "port" });
  assert.deepEqual(parseMetadata({ lines: "=1", kept: [] }), { fault: "=1" });
  assert.deepEqual(parseMetadata({ lines: " a = 1 ", kept: [["a", "1\n2"]] }), { metadata: { a: "1" } });
});
