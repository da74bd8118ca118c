//! Removing hidden text keeps all visible text, whatever else is in the file.

use std::time::{Duration, Instant};

use crate::common::{HIDDEN_TEXT_WARNING, Pdf, STATES, check, parsers, reads, set};
use lkr_parsers::{Clock, Deadline, Parser, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide};

const SEEN: &str = "Everybody sees this line, which is longer than all that is hidden.";

/// Transparent text inside saved and restored graphics state.
fn transparent() -> String {
    format!("q /F gs {} Q\n", set(600, "Hidden."))
}

#[test]
fn syntax_errors_in_content_lose_no_visible_text() {
    for error in [") ", "--1 w ", "] ", "\\ ", "1 0 0 1 0 --0 cm "] {
        let visible = format!("{SEEN} After. The end.");
        for page in [
            set(700, SEEN) + &transparent() + error + &set(500, "After.") + &set(400, "The end."),
            error.to_owned() + &set(700, SEEN) + &transparent() + &set(500, "After.") + &set(400, "The end."),
        ] {
            reads(&Pdf::default().page(&page).entries(STATES, "", ""), &visible, true);
        }
    }
}

#[test]
fn text_after_an_unterminated_string_does_not_break_other_pages() {
    let page = set(700, SEEN) + &transparent() + "BT /R 10 Tf 50 500 Td (never closed Tj ET";
    let pdf = Pdf::default().page(&page).page(&set(700, "Another page.")).entries(STATES, "", "");
    reads(&pdf, &format!("{SEEN} Another page."), true);
}

#[test]
fn form_hidden_on_one_page_stays_visible_on_another() {
    let outer = format!("{STATES} /XObject << /B 6 0 R >>");
    let pdf = Pdf::default()
        .form("", &set(500, "Inner."))
        .form_with("/BBox [0 0 600 800]", &outer, "/F gs /B Do")
        .form("", &format!("1 g {}", set(400, "White.")))
        .page(&(set(700, SEEN) + "/A Do"))
        .page(&(set(700, "Page two.") + "/B Do"))
        .page(&(set(700, "Page three.") + "/B Do 0 g 40 390 500 30 re f /W Do"))
        .entries("/XObject << /A 7 0 R /B 6 0 R /W 8 0 R >>", "", "");
    reads(&pdf, &format!("{SEEN} Page two. Inner. Page three. Inner. White."), true);
}

/// Hidden text in forms nested to this depth.
fn nested(depth: u32) -> Pdf {
    let innermost = format!("/F gs {}", set(400, "Hidden."));
    let first = Pdf::default().form_with("/BBox [0 0 600 800]", STATES, &innermost);
    let pdf = (1..depth).fold(first, |pdf, at| {
        pdf.form_with("/BBox [0 0 600 800]", &format!("/XObject << /X {} 0 R >>", at + 5), "/X Do")
    });
    pdf.page(&(set(700, SEEN) + "/X Do")).entries(&format!("/XObject << /X {} 0 R >>", depth + 5), "", "")
}

#[test]
fn hidden_text_in_nested_forms_is_removed() {
    for depth in [1, 9, 10, 20] {
        check(&nested(depth).bytes(), |name, parsed| {
            assert_eq!(parsed.text, SEEN, "{name} {depth}");
        });
    }
}

#[test]
fn mutually_recursive_forms_end_and_keep_visible_text() {
    let (of_a, of_b) = (format!("{STATES} /XObject << /B 7 0 R >>"), "/XObject << /A 6 0 R >>");
    let pdf = Pdf::default()
        .form_with("/BBox [0 0 600 800]", &of_a, &format!("/B Do /F gs {}", set(500, "Hidden.")))
        .form_with("/BBox [0 0 600 800]", of_b, &format!("{} /A Do", set(400, "In b.")))
        .page(&(set(700, SEEN) + "/A Do"))
        .page(&(set(700, "Page two.") + "/B Do"))
        .entries("/XObject << /A 6 0 R /B 7 0 R >>", "", "");
    reads(&pdf, &format!("{SEEN} In b. Page two. In b."), true);
}

#[test]
fn white_text_is_kept_if_the_rendered_page_shows_it() {
    let lines: String =
        (0..20).map(|at| format!("40 {0} m 340 {0} l S ", 585 + at * 2)).collect::<Vec<_>>().concat();
    let hatched = format!("{} 0 G 3 w {lines} 1 g {}", set(700, SEEN), set(600, "On hatching."));
    let dot = "0 g BT /R 300 Tf 50 300 Td (\\225) Tj ET 1 g BT /R 14 Tf 80 400 Td (On a dot.) Tj ET 0 g\n";
    for states in ["", STATES] {
        let pdf = Pdf::default().page(&hatched).entries(states, "", "");
        reads(&pdf, &format!("{SEEN} On hatching."), false);
        let pdf = Pdf::default().page(&(set(700, SEEN) + dot)).entries(states, "", "");
        check(&pdf.bytes(), |name, parsed| {
            // pdf_oxide cannot render letters of fonts that are not embedded.
            assert!(name == "pdf_oxide" || parsed.text.contains("On a dot."), "{name}: {}", parsed.text);
        });
    }
    let plain = set(700, SEEN) + "1 g " + &set(600, "Hidden.");
    reads(&Pdf::default().page(&plain).entries(STATES, "", ""), SEEN, true);
}

#[test]
fn invalid_render_modes_keep_text_visible() {
    let page = set(700, SEEN) + "8 Tr " + &set(600, "Seen.") + "3 Tr Tr " + &set(500, "The end.");
    reads(&Pdf::default().page(&page).entries(STATES, "", ""), &format!("{SEEN} Seen. The end."), false);
}

#[test]
fn undrawn_text_is_removed_in_every_notation_of_the_mode() {
    for mode in ["3 Tr", "3.00 Tr", "3            Tr", "3 %x\nTr", "0 3 Tr", "7 Tr"] {
        let page = set(700, SEEN) + mode + "\n" + &set(600, "Hidden.") + "0 Tr";
        reads(&Pdf::default().page(&page), SEEN, true);
    }
}

#[test]
fn memberships_without_groups_keep_their_text() {
    for groups in ["[null]", "[]", "[99 0 R]", "null"] {
        let page = set(700, SEEN) + &format!("/OC /M BDC {} EMC", set(600, "Seen."));
        let pdf = Pdf::default()
            .page(&page)
            .object("<< /Type /OCG /Name (off) >>")
            .object(&format!("<< /Type /OCMD /OCGs {groups} >>"))
            .entries(
                "/Properties << /M 7 0 R >>",
                "",
                "/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >>",
            );
        reads(&pdf, &format!("{SEEN} Seen."), false);
    }
}

#[test]
fn inline_images_are_kept() {
    let picture = "q 500 0 0 30 40 490 cm BI /W 1 /H 1 /BPC 8 /CS /G /F /AHx ID 00> EI Q\n";
    let page = set(700, SEEN)
        + picture
        + "1 g "
        + &set(500, "On a picture.")
        + "0 g "
        + &transparent()
        + &set(300, "End.");
    reads(&Pdf::default().page(&page).entries(STATES, "", ""), &format!("{SEEN} On a picture. End."), true);
}

#[test]
fn squeezed_or_clipped_text_is_removed() {
    let empty = |entries: &str| Pdf::default().form_with(entries, "", &set(600, "Hidden."));
    for boxed in ["/BBox [0 0 0 0]", "/BBox [0 0 600 0]"] {
        let pdf = empty(boxed).page(&(set(700, SEEN) + "/X Do")).entries("/XObject << /X 6 0 R >>", "", "");
        reads(&pdf, SEEN, true);
    }
    for hidden in [
        "0 Tz BT /R 10 Tf 50 600 Td (Hidden.) Tj ET 100 Tz",
        "BT /R 10 Tf 0.0001 0 0 1 50 600 Tm (Hidden.) Tj ET",
        "q 50 600 0 0 re W n BT /R 10 Tf 50 600 Td (Hidden.) Tj ET Q",
    ] {
        let page = set(700, SEEN) + hidden + " " + &set(500, "The end.");
        reads(&Pdf::default().page(&page), &format!("{SEEN} The end."), true);
    }
    let page = set(700, SEEN) + "50 Tz " + &set(600, "Narrow.") + "q 0 0 600 800 re W n " + &set(500, "Cut.");
    reads(&Pdf::default().page(&page), &format!("{SEEN} Narrow. Cut."), false);
}

#[test]
fn transparent_text_in_cjk_fonts_without_a_unicode_map_is_removed() {
    for encoding in ["UniGB-UCS2-H", "GBK-EUC-H", "90ms-RKSJ-H", "UniJIS-UTF16-H", "UniGB-UTF16-H"] {
        let font = format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /{encoding} \
             /DescendantFonts [6 0 R] >>"
        );
        let inner = "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 \
            /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>";
        let content = "/F gs BT /G 10 Tf 50 600 Td <004800490044> Tj ET";
        let form = format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /G 7 0 R >> {STATES} >> \
             /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        );
        let pdf = Pdf::default().object(inner).object(&font).object(&form);
        let pdf = pdf.page(&(set(700, SEEN) + "/X Do")).entries("/XObject << /X 8 0 R >>", "", "");
        check(&pdf.bytes(), |name, parsed| assert_eq!(parsed.text, SEEN, "{name} {encoding}"));
    }
}

#[test]
fn transparent_text_in_a_font_of_a_graphics_state_is_removed() {
    let states = "/ExtGState << /F << /ca 0 /Font [3 0 R 10] >> >>";
    let page = set(700, SEEN) + "q /F gs BT 50 600 Td (Hidden.) Tj ET Q";
    check(&Pdf::default().page(&page).entries(states, "", "").bytes(), |name, parsed| {
        assert_eq!(parsed.text, SEEN, "{name}");
    });
}

#[test]
fn decompression_bombs_end_in_time() {
    // A huge empty form that is drawn 2000 times, and a font with more ranges than codes.
    let ranges = "0 70000 500 ".repeat(20_000);
    let inner = format!("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /W [{ranges}] >>");
    let font =
        "<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /DescendantFonts [7 0 R] >>";
    let page = set(700, SEEN) + &"/X Do ".repeat(2000) + "BT /G 10 Tf 50 600 Td <0041> Tj ET";
    let pdf = Pdf::default().form("", &" ".repeat(31 << 20)).object(&inner).object(font);
    let pdf = pdf.page(&page).page(&set(700, "Page two."));
    let bytes = pdf.entries("/XObject << /X 6 0 R >>", "", "").bytes();
    let bytes = String::from_utf8(bytes).unwrap().replace("/B 4 0 R", "/G 8 0 R");
    let started = Instant::now();
    let parser = Lopdf::new(PdfOptions::default());
    let parsed = parser.parse(&Source::new(bytes.as_bytes())).unwrap();
    assert!(parsed.text.contains("Page two."), "{}", parsed.text);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn deeply_nested_graphics_states_keep_their_alpha() {
    let page = set(700, SEEN) + &"q ".repeat(2000) + "/F gs q " + &"q Q ".repeat(3) + &set(600, "Hidden.");
    reads(&Pdf::default().page(&page).entries(STATES, "", ""), SEEN, true);
}

#[test]
fn hidden_text_on_pages_without_a_type_is_removed() {
    let pdf = Pdf::default().page(&set(700, SEEN)).page(&(set(700, "Page two.") + &transparent()));
    let bytes = pdf.entries(STATES, "", "").bytes();
    let file = String::from_utf8(bytes).unwrap();
    let at = file.rfind("/Type /Page /Parent").unwrap();
    let file = format!("{}           {}", &file[..at], &file[at + 11..]);
    check(file.as_bytes(), |name, parsed| {
        assert!(!parsed.text.contains("Hidden"), "{name}: {}", parsed.text);
    });
}

#[test]
fn oversized_page_is_kept_unchecked_with_a_warning() {
    let long = set(700, SEEN) + &" ".repeat(33 << 20) + &set(600, "Far behind.");
    let pdf =
        Pdf::default().page(&long).page(&(set(700, "Page two.") + &transparent())).entries(STATES, "", "");
    for parser in parsers(&PdfOptions::default()) {
        let Ok(parsed) = parser.parse(&Source::new(&pdf.bytes())) else { continue };
        let has = |words| parsed.text.contains(words);
        assert!(has("Page two.") && !has("Hidden"), "{}: {}", parser.name(), parsed.text);
        if parser.name() != "lopdf" {
            assert!(has("Far behind."), "{}", parser.name());
            let warning = "1 page was not checked for hidden text";
            assert!(parsed.warnings.iter().any(|found| found == warning), "{:?}", parsed.warnings);
        }
    }
}

/// Technical drawings: each sheet draws one symbol 5000 times, in `greys` shades of grey.
fn plans(sheets: u32, greys: u32) -> Vec<u8> {
    let symbol = "0 0 m 10 10 l S\n".repeat(600);
    let draw = |at: u32| {
        format!("q {} g 1 0 0 1 {} {} cm /X Do Q\n", f64::from(at % greys) / 1e4, at % 500, at / 50)
    };
    let draws: String = (0..5000).map(draw).collect();
    let sheet = |at| set(700, &format!("Sheet {at} of the plan.")) + &draws;
    let pdf = Pdf::default().form("", &symbol).object("<< /Type /OCG /Name (off) >>");
    let pdf = (0..sheets).fold(pdf, |pdf, at| pdf.page(&sheet(at)));
    let layers = "/OCProperties << /OCGs [7 0 R] /D << /OFF [7 0 R] >> >>";
    pdf.entries("/XObject << /X 6 0 R >> /Properties << /M 7 0 R >>", "", layers).bytes()
}

#[test]
fn drawings_with_many_repeated_symbols_are_read_in_time() {
    // With one colour a symbol is interpreted only twice a page. With changing colours it is interpreted each time, which
    // takes longer than the time share of the search.
    for (sheets, greys, seconds) in [(10, 1, 12), (40, 5000, 6)] {
        let bytes = plans(sheets, greys);
        for parser in [&PdfOxide::default() as &dyn Parser, &Lopdf::default()] {
            let deadline = Some(Deadline::after(Clock::Wall, Duration::from_secs(seconds)));
            let parsed = parser.parse(&Source { deadline, ..Source::new(&bytes) }).unwrap();
            let unchecked =
                parsed.warnings.iter().any(|warning| warning.contains("not checked for hidden text"));
            assert!(!unchecked || greys > 1, "{}: {:?}", parser.name(), parsed.warnings);
            // As the main engine lopdf interprets all sheets, and leaves out those after the deadline.
            let found = u32::try_from(parsed.text.matches("of the plan.").count()).unwrap();
            assert!(found == sheets || (parser.name() == "lopdf" && greys > 1), "{}: {found}", parser.name());
        }
    }
}

#[test]
fn hidden_text_search_without_time_reports_nothing_removed() {
    let pdf = Pdf::default().page(&(set(700, SEEN) + &transparent())).page(&set(700, "Page two."));
    let bytes = pdf.entries(STATES, "", "").bytes();
    for parser in parsers(&PdfOptions::default()) {
        let deadline = Some(Deadline::after(Clock::Wall, Duration::from_millis(1)));
        std::thread::sleep(Duration::from_millis(1));
        // There is no time for reading either. The test checks only that no removal is reported.
        if let Ok(parsed) = parser.parse(&Source { deadline, ..Source::new(&bytes) }) {
            assert!(
                parsed.warnings.iter().all(|warning| warning != HIDDEN_TEXT_WARNING),
                "{:?}",
                parsed.warnings
            );
        }
    }
}
