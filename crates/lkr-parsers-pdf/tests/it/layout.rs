//! Pages in columns, and headings of documents without an outline.

use crate::common::{Pdf, headings, line, parsers, text};
use lkr_domain::Parsed;
use lkr_parsers::Source;
use lkr_parsers_pdf::PdfOptions;

fn check(bytes: &[u8], expect: impl Fn(&str, &Parsed)) {
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(bytes)).unwrap();
        lkr_parsers::conformance::assert_well_formed(&parsed);
        expect(parser.name(), &parsed);
    }
}

/// A column of lines from `top` down; each line begins with `name` and its number.
fn column(x: u32, top: u32, lines: u32, name: &str) -> String {
    let words = "of words that fill it all the way to its edge";
    (0..lines).map(|at| text('R', 10, (x, top - 12 * at), &format!("{name}{at} {words}"))).collect()
}

/// A title and a caption across two columns, each split at the gutter as pdf_oxide splits them.
fn paper() -> Vec<u8> {
    let title = text('B', 18, (110, 740), "A long title that runs across")
        + &text('B', 18, (353, 740), "both columns");
    let more = text('B', 18, (220, 718), "and into a second line");
    let caption =
        text('R', 9, (60, 500), "Figure 1: what this picture shows to all who look at it is wide, ")
            + &text('R', 9, (301, 500), "wider than a column of this page is, and so it runs across.");
    let page = title
        + &more
        + &column(50, 680, 12, "upperleft")
        + &column(50, 470, 12, "lowerleft")
        + &caption
        + &column(315, 680, 12, "upperright")
        + &column(315, 470, 12, "lowerright");
    Pdf::default().page(&page).bytes()
}

#[test]
fn lines_across_the_gutter_separate_the_columns() {
    check(&paper(), |name, parsed| {
        // lopdf keeps the order of the file and ignores positions.
        if name == "lopdf" {
            return;
        }
        let at = |words: &str| {
            parsed.text.find(words).unwrap_or_else(|| panic!("{name}: {words}: {}", parsed.text))
        };
        let order = [
            at("A long title that runs across both columns"),
            at("and into a second line"),
            at("upperleft0 "),
            at("upperleft11 "),
            at("upperright0 "),
            at("upperright11 "),
            at("who look at it is wide, wider than"),
            at("lowerleft0 "),
            at("lowerright0 "),
            at("lowerright11 "),
        ];
        // PDFium keeps the order of the file, in which the caption follows the left column.
        assert!(order.is_sorted() || name == "pdfium", "{name}: {order:?} {}", parsed.text);
    });
}

#[test]
fn title_on_two_lines_is_one_heading() {
    check(&paper(), |name, parsed| {
        let found = headings(parsed);
        let [(1, title, Some(1))] = found[..] else { panic!("{name}: {found:?}") };
        // Without the widths of the standard fonts, lopdf guesses the gap.
        let expected = "A long title that runs across both columns and into a second line";
        assert_eq!(title.replace(' ', ""), expected.replace(' ', ""), "{name}");
    });
}

#[test]
fn numbered_titles_of_equal_size_get_levels_from_their_numbers() {
    let body = |y: u32| {
        line(10, y, "The text of the section goes on and on in letters of the usual size,")
            + &line(10, y - 12, "and then it ends.")
    };
    let page = text('B', 12, (50, 740), "1. Introduction")
        + &body(700)
        + &text('B', 12, (50, 650), "2. Methods")
        + &text('B', 12, (50, 634), "2.1 Materials")
        + &body(610)
        + &text('B', 12, (50, 560), "2.1.1 Wood, and how it was cut")
        + &body(530)
        + &text('B', 12, (50, 480), "3. Results")
        + &body(450);
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        let expected = [
            (1, "1. Introduction", Some(1)),
            (1, "2. Methods", Some(1)),
            (2, "2.1 Materials", Some(1)),
            (3, "2.1.1 Wood, and how it was cut", Some(1)),
            (1, "3. Results", Some(1)),
        ];
        assert_eq!(headings(parsed), expected, "{name}");
    });
}

#[test]
fn authors_captions_and_list_items_are_not_headings() {
    let body: String = (0..12)
        .map(|at| line(10, 600 - 12 * at, "Text of the paper in letters of the usual size."))
        .collect();
    let page = line(20, 740, "On Trees")
        + &line(12, 700, "Ann Lee, Bob Ray, Cy Day, and Di Fox")
        + &line(12, 684, "Hill College")
        + &line(12, 668, "ann@example.org")
        + &body
        + &text('B', 10, (50, 430), "Figure 2: A tree")
        + &text('B', 10, (50, 400), "- one more tree")
        + &text('B', 10, (50, 370), "A sentence in bold letters ends here.");
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        assert_eq!(headings(parsed), [(1, "On Trees", Some(1))], "{name}: {}", parsed.text);
    });
}

#[test]
fn repeated_line_is_not_a_heading() {
    let body = |at: u32| {
        line(10, 380, &format!("Page {at} tells of something else altogether, and at some length."))
    };
    let pages = (0..5).map(|at| text('B', 14, (50, 400), "Please turn over") + &body(at));
    let pdf = pages.fold(Pdf::default(), |pdf, page| pdf.page(&page));
    check(&pdf.bytes(), |name, parsed| assert_eq!(headings(parsed), [], "{name}"));
}

#[test]
fn outline_is_ignored_if_the_option_is_off() {
    let body = line(10, 640, "The text of the chapter goes on and on in letters of the usual size.");
    let pdf = Pdf::default().page(&(line(14, 700, "Whales") + &body)).entry(0, "Of whales", 0, 715.0);
    for (outline, expected) in [(true, "Of whales"), (false, "Whales")] {
        for parser in parsers(&PdfOptions { outline, ..PdfOptions::default() }) {
            let parsed = parser.parse(&Source::new(&pdf.bytes())).unwrap();
            assert_eq!(headings(&parsed), [(1, expected, Some(1))], "{}", parser.name());
        }
    }
}

/// Several paragraphs from `y` down.
fn prose(y: u32) -> String {
    (0..8)
        .map(|at| {
            line(10, y - 12 * at, "The text of the report goes on in letters of the usual size and weight,")
        })
        .collect()
}

/// A report with a cover, a table of contents and four sections.
fn report() -> Pdf {
    let cover = text('B', 22, (200, 740), "FORM 10-K")
        + &text('B', 16, (100, 700), "SECURITIES COMMISSION")
        + &text('R', 13, (100, 670), "Washington, near the river")
        + &text('B', 18, (100, 630), "oOo")
        + &prose(500);
    let entries = ["Item 1. Business", "Item 2. Properties", "Item 3. Risks", "Item 4. Results"];
    let contents: String = (0..)
        .zip(entries)
        .map(|(at, entry)| {
            let y = 700 - 20 * at;
            text('B', 10, (50, y), entry) + &text('R', 10, (500, y), &format!("{}", at + 3))
        })
        .collect();
    let section = |name| text('B', 10, (50, 740), name) + &prose(715);
    let pdf = Pdf::default().page(&cover).page(&(text('B', 10, (50, 740), "Contents") + &contents));
    entries.iter().fold(pdf, |pdf, name| pdf.page(&section(name)))
}

#[test]
fn cover_and_table_of_contents_have_no_headings_of_their_own() {
    check(&report().bytes(), |name, parsed| {
        let expected = [
            (1, "Contents", Some(2)),
            (1, "Item 1. Business", Some(3)),
            (1, "Item 2. Properties", Some(4)),
            (1, "Item 3. Risks", Some(5)),
            (1, "Item 4. Results", Some(6)),
        ];
        assert_eq!(headings(parsed), expected, "{name}: {}", parsed.text);
    });
}

#[test]
fn parts_of_sentences_statements_and_formulas_are_not_headings() {
    let page = prose(760)
        + &text('B', 10, (50, 640), "Revenue from fees decreased in the year due to")
        + &line(10, 620, "lower volumes in the market, which had fallen.")
        + &text('B', 10, (50, 590), "Lending fees decreased in some of the months")
        + &line(10, 578, "because of lower volumes in the market.")
        + &text('B', 10, (50, 550), "Theorem 2 (Main result)")
        + &text('R', 14, (50, 520), "Pr[Zi")
        + &text('B', 10, (50, 490), "Variables. ")
        + &text('R', 10, (110, 490), "A row of pending")
        + &text('B', 10, (50, 460), "Fees")
        + &prose(440);
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        assert_eq!(headings(parsed), [(1, "Fees", Some(1))], "{name}: {}", parsed.text);
    });
}

#[test]
fn numbers_alone_show_headings_and_list_items_are_none() {
    let section = |y: u32, title: &str| line(10, y, title) + &prose(y - 24);
    let items: String = (1..5).map(|at| line(10, 150 - 24 * at, &format!("{at}. Item of a list"))).collect();
    let page = prose(770)
        + &section(650, "I. INTRODUCTION")
        + &section(500, "II. RELATED WORK")
        + &section(350, "III. RESULTS")
        + &items;
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        let expected =
            [(1, "I. INTRODUCTION", Some(1)), (1, "II. RELATED WORK", Some(1)), (1, "III. RESULTS", Some(1))];
        assert_eq!(headings(parsed), expected, "{name}: {}", parsed.text);
    });
}
