//! Pages that an engine cannot read.

use lkr_parsers::Source;
use lkr_parsers_pdf::PdfOptions;

use crate::{
    common::{Pdf, check, line, parsers, set},
    encodings::{coded, with_font},
};

#[test]
fn page_that_an_engine_cannot_read_is_read_by_another() {
    let bytes = Pdf::default().page(&set(700, "Shown by viewers.")).bytes();
    let bytes = String::from_utf8(bytes).unwrap().replace("[0 0 600 800]", "[0 0 0 0]    ");
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(bytes.as_bytes())).unwrap();
        assert_eq!(parsed.text, "Shown by viewers.", "{}: {:?}", parser.name(), parsed.warnings);
        let is_named = |warning: &String| warning.starts_with("1 page was read by ");
        assert_eq!(
            parsed.warnings.iter().any(is_named),
            parser.name() == "pdf_oxide",
            "{:?}",
            parsed.warnings
        );
    }
}

#[test]
fn text_without_known_characters_has_a_warning() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 7 0 R >>";
    let map = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n\
               1 beginbfrange\n<41> <5A> <E041>\nendbfrange endcmap";
    let content = line(10, 700, "Some words.") + &coded(650, &"41 4A 4B 5A ".repeat(12));
    check(&with_font(&content, font, map).bytes(), |name, parsed| {
        let is_warned =
            parsed.warnings.iter().any(|warning| warning.starts_with("1 page has unreadable text"));
        assert!(is_warned, "{name}: {:?} {}", parsed.warnings, parsed.text);
    });
}

#[test]
fn codes_whose_lengths_the_file_declares_are_read() {
    // The codes are UTF-8: of one byte for a space, and of two for Cyrillic letters.
    let map = "/CMapName /Own-UTF8-H def /CMapType 1 def begincmap\n2 begincodespacerange <00> <7F> <C280> <DFBF> \
               endcodespacerange\n2 begincidrange <00> <7F> 0 <D090> <D0BF> 1040 endcidrange\n\
               3 beginbfrange <00> <7F> <0000> <D090> <D0BF> <0410> <D180> <D18F> <0440> endbfrange endcmap";
    let font = "<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding 7 0 R /ToUnicode 7 0 R /DescendantFonts [ \
                << /Type /Font /Subtype /CIDFontType2 /BaseFont /Own /DW 600 /CIDSystemInfo << /Registry (Own) \
                /Ordering (Own) /Supplement 0 >> >> ] >>";
    let codes: String = "Номер листа".bytes().map(|byte| format!("{byte:02X}")).collect();
    check(&with_font(&coded(700, &codes), font, map).bytes(), |name, parsed| {
        assert_eq!(parsed.text, "Номер листа", "{name}: {:?}", parsed.warnings);
    });
}
