// Gold sets whose documents are not all there.
import { test } from "node:test";
import { ADMIN, BASE, WIDTHS, addText, checkAccessibility, checkWidth, settled, shoot, signIn, visit } from "./browser.mjs";

const id = (n) => n.toString(16).padStart(32, "0");

async function choose(page, queries) {
  const buffer = Buffer.from(JSON.stringify({ queries }));
  await page.locator("input[type=file]").setInputFiles({ name: "gold.json", mimeType: "application/json", buffer });
}

test("unknown documents of a gold set are told before it is run", async (t) => {
  const { doc_id } = await addText({ title: "Ice", text: "The ice is thick.", force: true });
  const page = await visit(t);
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/admin/evaluation`);
  await settled(page);
  const known = { text: "How thick is the ice?", relevant: [{ doc_id }] };
  // More documents than are asked for at once.
  const others = Array.from({ length: 120 }, (_, n) => ({ doc_id: id(n) }));
  await choose(page, [known, { text: "Who enters?", relevant: others }, { text: "Both?", relevant: [{ doc_id }, { doc_id: id(1) }] }]);
  await page.getByText("120 of its 121 documents are not here, and count as not found:").waitFor();
  await page.getByText("1 query has no other document.").waitFor();
  await page.getByText(id(0)).waitFor();
  await page.getByText("and 117 more").waitFor();
  await page.getByRole("button", { name: "Evaluate", disabled: false }).waitFor();
  await checkAccessibility(page, "a gold set with unknown documents");
  await shoot(page, "gold");

  await choose(page, [known]);
  await page.getByText("1 judgement.").waitFor();
  await page.getByText("Looking for its documents…").waitFor({ state: "detached" });
  await page.getByText("not here").waitFor({ state: "detached" });
});

test("unknown documents are told on a phone", async (t) => {
  const page = await visit(t, { width: WIDTHS.phone, theme: "dark", language: "zh" });
  await signIn(page, ADMIN);
  await page.goto(`${BASE}/admin/evaluation`);
  await settled(page);
  await choose(page, [{ text: "冰有多厚？", relevant: [{ doc_id: id(7) }] }]);
  await page.getByText("其 1 个文档中有 1 个不存在，将按未找到计算：").waitFor();
  await checkWidth(page, "a gold set");
  await shoot(page, "gold-phone");
});
