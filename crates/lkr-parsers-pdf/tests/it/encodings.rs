//! Fonts whose codes are not those of letters.

use crate::common::{Pdf, check};

/// A line in the font `F` at height `y`; `codes` are hexadecimal.
pub(crate) fn coded(y: u32, codes: &str) -> String {
    format!("BT /F 10 Tf 50 {y} Td <{codes}> Tj ET\n")
}

/// The codes of a text in a font in which every letter but A has the code before it.
fn shifted(text: &str) -> String {
    text.bytes().map(|byte| format!("{:02X}", byte - u8::from(byte.is_ascii_alphabetic()))).collect()
}

/// A file with a page of this content and the font `F`, which is object 6, with a stream as object 7.
pub(crate) fn with_font(content: &str, font: &str, stream: &str) -> Pdf {
    with_packed(content, font, "", stream)
}

/// The same with further entries of the stream.
fn with_packed(content: &str, font: &str, entries: &str, stream: &str) -> Pdf {
    let length = stream.len();
    // The builder has only the fonts of its pages, so a form has this one.
    let form = format!(
        "<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F 6 0 R >> >> \
         /Length {} >>\nstream\n{content}\nendstream",
        content.len()
    );
    Pdf::default()
        .page("/Form Do")
        .object(font)
        .object(&format!("<< /Length {length} {entries} >>\nstream\n{stream}\nendstream"))
        .object(&form)
        .entries("/XObject << /Form 8 0 R >>", "", "")
}

/// Asserts that every parser reads this text.
#[track_caller]
fn reads(pdf: &Pdf, expected: &str) {
    check(&pdf.bytes(), |name, parsed| {
        let found: Vec<&str> = parsed.text.split_whitespace().collect();
        assert_eq!(found.join(" "), expected, "{name}: {:?}", parsed.warnings);
    });
}

/// A font whose glyphs are drawn by the file, with these names of all glyphs from a code on.
fn drawn(first: u8, names: &[String], more: &str) -> String {
    let widths = "50 ".repeat(names.len());
    let procedures: String = names.iter().map(|name| format!("{name} 7 0 R ")).collect();
    format!(
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 50 70] /FontMatrix [.01 0 0 .01 0 0] /FirstChar {first} \
         /LastChar {} /Widths [{widths}] /CharProcs << {procedures} >> \
         /Encoding << /Type /Encoding /Differences [{first} {}] >> {more} >>",
        usize::from(first) + names.len() - 1,
        names.concat()
    )
}

const GLYPH: &str = "50 0 0 0 50 70 d1 0 0 40 60 re f";

#[test]
fn maps_with_arrays_over_several_lines_are_read() {
    let targets: String = (0x41..=0x79).map(|code| format!("<{:04X}>\n", code + 1)).collect();
    let map = format!(
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange\n\
         <00><FF>endcodespacerange\n1 beginbfrange\n<41><79>[{targets}]\nendbfrange\nendcmap end end"
    );
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 7 0 R >>";
    let content = coded(700, &shifted("Several lines.")) + &coded(680, &shifted("Every one."));
    reads(&with_font(&content, font, &map), "Several lines. Every one.");
}

/// A map by which each letter but A has the code before it.
const SHIFTED: &str = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n\
                       2 beginbfrange\n<40> <59> <0041>\n<60> <79> <0061>\nendbfrange endcmap";

#[test]
fn maps_that_are_packed_with_a_wrong_checksum_are_read() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 7 0 R >>";
    let length = u16::try_from(SHIFTED.len()).unwrap();
    // A zlib header, one stored block (RFC 1950 and 1951), and four bytes that are not its checksum.
    let head = [&b"\x78\x01\x01"[..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
    let packed = [&head, SHIFTED.as_bytes(), b"oops"].concat();
    // The builder takes text.
    let stand_in = "~".repeat(packed.len());
    let content = coded(700, &shifted("Nobody checks."));
    let mut file = with_packed(&content, font, "/Filter /FlateDecode", &stand_in).bytes();
    let at = file.windows(packed.len()).position(|window| window == stand_in.as_bytes()).unwrap();
    file[at..at + packed.len()].copy_from_slice(&packed);
    check(&file, |name, parsed| {
        assert_eq!((parsed.text.as_str(), &*parsed.warnings), ("Nobody checks.", &[][..]), "{name}");
    });
}

#[test]
fn control_characters_are_not_the_text_of_letters() {
    let map = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n\
               1 beginbfchar\n<63> <000D>\nendbfchar endcmap";
    let font =
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 7 0 R >>";
    reads(&with_font("BT /F 10 Tf 50 700 Td (A copula approach) Tj ET", font, map), "A copula approach");
}

#[test]
fn bitmap_fonts_of_tex_have_ligatures() {
    let names: Vec<String> = (16..=122).map(|code| format!("/a{code}")).collect();
    let content = "BT /F 10 Tf 50 700 Td (The signi\\034er su\\036ces) Tj ET";
    let spaced = with_font(content, &drawn(16, &names, ""), GLYPH);
    check(&spaced.bytes(), |name, parsed| {
        let text: String = parsed.text.split_whitespace().collect();
        assert_eq!(text, "Thesignifiersuffices", "{name}: {:?}", parsed.warnings);
    });
}

#[test]
fn drawn_fonts_without_a_box_are_shown() {
    let names: Vec<String> = (b'A'..=b'z').map(|code| format!("/G{code}")).collect();
    let font = drawn(b'A', &names, "").replace(
        "/FontBBox [0 0 50 70] /FontMatrix [.01 0 0 .01 0 0]",
        "/FontBBox [0 0 1 -1] /FontMatrix [1 0 0 -1 0 0]",
    );
    let content = "BT /F .12 Tf 1 0 0 -1 50 700 Tm (Bitmaps) Tj ET";
    reads(&with_font(content, &font, GLYPH), "Bitmaps");
}
