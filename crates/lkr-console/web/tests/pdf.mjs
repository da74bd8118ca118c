// PDF files for tests.

/** A PDF file with these pages, each a list of lines. */
export function pdf(pages) {
  const objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"];
  const kids = pages.map((lines) => {
    const moves = lines.map((line, at) => `${at === 0 ? "72 720" : "0 -18"} Td (${line}) Tj`);
    const stream = `BT /F1 12 Tf ${moves.join("\n")} ET`;
    objects.push(`<</Length ${stream.length}>>\nstream\n${stream}\nendstream`);
    const resources = "/Resources<</Font<</F1 3 0 R>>>>";
    objects.push(`<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents ${objects.length} 0 R${resources}>>`);
    return `${objects.length} 0 R`;
  });
  objects[1] = `<</Type/Pages/Kids[${kids.join(" ")}]/Count ${kids.length}>>`;
  let text = "%PDF-1.4\n";
  const places = objects.map((object, at) => {
    const place = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const start = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`;
  for (const place of places) text += `${String(place).padStart(10, "0")} 00000 n \n`;
  return `${text}trailer\n<</Size ${objects.length + 1}/Root 1 0 R>>\nstartxref\n${start}\n%%EOF\n`;
}
