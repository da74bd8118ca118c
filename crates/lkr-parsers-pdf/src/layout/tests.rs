use lkr_domain::BlockKind;
use proptest::prelude::*;

use super::*;
use crate::page::Rect;

/// A line at that height, of that size.
fn line(text: &str, bottom: f32, size: f32) -> Line {
    let place = Rect { left: 50.0, bottom, right: 50.0 + text.len() as f32 * size * 0.5, top: bottom + size };
    Line { text: text.into(), place: Some(place), size, ..Line::default() }
}

fn page(lines: Vec<Line>) -> Page {
    let frame = Rect { left: 0.0, bottom: 0.0, right: 600.0, top: 800.0 };
    Page { frame: Some(frame), lines, ..Page::default() }
}

fn entry(title: &str, top: Option<f32>) -> Entry {
    Entry { title: title.into(), level: 1, page: 0, top }
}

/// The texts of the headings that one entry makes of a page.
fn heading_text(lines: &[&str], title: &str, top: Option<f32>) -> String {
    let lines =
        (0_u8..).zip(lines).map(|(at, text)| line(text, 700.0 - 20.0 * f32::from(at), 10.0)).collect();
    let parsed = compose(vec![page(lines)], &[entry(title, top)], vec![]).unwrap();
    let heading = parsed.blocks.iter().find(|block| matches!(block.kind, BlockKind::Heading { .. })).unwrap();
    parsed.text.get(heading.range.clone()).unwrap().to_owned()
}

#[test]
fn titles_match_despite_spelling_and_line_breaks() {
    for (lines, title, expected) in [
        (&["Text", "Results"][..], "results", "Results"),
        (&["Text", "R e s u l t s"], "Results", "R e s u l t s"),
        (&["Text", "De\u{fb01}nitions"], "Definitions", "De\u{fb01}nitions"),
        (&["Text", "2.1 Methods"], "Methods", "2.1 Methods"),
        (&["Text", "Methods"], "2.1 Methods", "Methods"),
        (&["Text", "On the origin", "of species"], "On the Origin of Species", "On the origin\nof species"),
        (&["Text", "Chapter 3 The end"], "The end", "Chapter 3 The end"),
        (&["Results were few.", "Results"], "Results", "Results"),
        (&["Text", "Abstract. We show"], "Abstract", "Abstract."),
        (&["Text", "more text that is longer"], "Absent", "§"),
    ] {
        assert_eq!(heading_text(lines, title, None), expected, "{lines:?} {title:?}");
    }
}

#[test]
fn equal_titles_are_separated_by_their_destinations() {
    let at = |top| {
        let lines =
            vec![line("Notes", 700.0, 10.0), line("Text of it.", 600.0, 10.0), line("Notes", 500.0, 10.0)];
        let parsed = compose(vec![page(lines)], &[entry("Notes", Some(top))], vec![]).unwrap();
        parsed.blocks.iter().position(|block| matches!(block.kind, BlockKind::Heading { .. })).unwrap()
    };
    assert_eq!((at(715.0), at(515.0)), (0, 2));
}

#[test]
fn consecutive_list_items_are_one_block() {
    let lines = vec![
        line("Take:", 700.0, 10.0),
        line("• an egg", 688.0, 10.0),
        line("that is fresh", 676.0, 10.0),
        line("• some salt", 664.0, 10.0),
    ];
    let parsed = compose(vec![page(lines)], &[], vec![]).unwrap();
    let kinds: Vec<_> = parsed.blocks.iter().map(|block| block.kind.clone()).collect();
    assert_eq!(kinds, [BlockKind::Paragraph, BlockKind::List]);
    assert_eq!(parsed.text, "Take:\n\n• an egg\nthat is fresh\n• some salt");
}

/// A bold line between these edges.
fn bold(text: &str, bottom: f32, left: f32, right: f32) -> Line {
    let place = Rect { left, bottom, right, top: bottom + 10.0 };
    Line { text: text.into(), place: Some(place), size: 10.0, is_bold: true, ..Line::default() }
}

/// The titles of the headings of a page with these lines above a table and some text.
fn titles_above_table(mut lines: Vec<Line>) -> Vec<String> {
    let rows = ["Millions\t2020\t2019", "Cash\t36\t31", "Inventories\t20\t17", "Goodwill\t14\t14"];
    let table = (0_u8..).zip(rows).map(|(at, row)| bold(row, 650.0 - 12.0 * f32::from(at), 50.0, 550.0));
    lines.extend(table.map(|row| Line { is_bold: false, ..row }));
    let words =
        "This is the text of the report, on lines that reach from one edge of the page to the other one.";
    let text = (0_u8..9).map(|at| bold(words, 500.0 - 12.0 * f32::from(at), 50.0, 550.0));
    lines.extend(text.map(|line| Line { is_bold: false, ..line }));
    let parsed = compose(vec![page(lines)], &[], vec![]).unwrap();
    let title = |block: &lkr_domain::Block| match &block.kind {
        BlockKind::Heading { title, .. } => Some(title.clone()),
        _ => None,
    };
    parsed.blocks.iter().filter_map(title).collect()
}

#[test]
fn bold_lines_above_a_table_are_one_heading() {
    let centred = vec![
        bold("ACME, INC.", 720.0, 260.0, 340.0),
        bold("CONSOLIDATED BALANCE SHEETS", 706.0, 220.0, 380.0),
        bold("(in millions)", 692.0, 250.0, 350.0),
    ];
    assert_eq!(titles_above_table(centred), ["ACME, INC. CONSOLIDATED BALANCE SHEETS"]);
    let at_left = vec![
        bold("Acme Company and Subsidiaries", 720.0, 50.0, 200.0),
        bold("Consolidated Balance Sheets", 706.0, 50.0, 180.0),
    ];
    assert_eq!(titles_above_table(at_left), ["Acme Company and Subsidiaries Consolidated Balance Sheets"]);
}

#[test]
fn bold_lines_of_other_kinds_are_no_heading() {
    let stack = |first: &str, second: &str, left: f32| {
        titles_above_table(vec![
            bold(first, 720.0, left, left + 100.0),
            bold(second, 706.0, left, left + 110.0),
        ])
    };
    assert_eq!(stack("Acme Company", "Balance Sheets", 50.0).len(), 1);
    assert!(stack("Location of Gain", "or Loss", 400.0).is_empty(), "a header above a column");
    assert!(stack("Nothing is certain.", "Buyers may leave", 50.0).is_empty(), "sentences");
    assert!(stack("Year ended May 31,", "Location of Gain", 50.0).is_empty(), "a date");
    assert!(
        stack("Note 4. Licences", "Wireless Licences", 50.0).is_empty(),
        "a heading and the one below it"
    );
}

#[test]
fn label_in_a_cell_of_its_own_belongs_to_its_heading() {
    let headings = |text: &str| titles_above_table(vec![bold(text, 720.0, 50.0, 200.0)]);
    assert_eq!(headings("Item 1A.\tRisk Factors"), ["Item 1A. Risk Factors"]);
    assert!(headings("Item 1A.\tRisk Factors\t12").is_empty(), "an entry of a table of contents");
    assert!(headings("Assets\tLiabilities").is_empty(), "a row of a table");
}

#[test]
fn name_below_a_signature_is_no_heading() {
    let below = |above: &str| {
        let above = Line { is_bold: false, ..bold(above, 740.0, 50.0, 150.0) };
        titles_above_table(vec![above, bold("Ann T. Lee", 726.0, 50.0, 100.0)])
    };
    assert!(below("/s/ ANN T. LEE").is_empty());
    assert_eq!(below("Of the board:"), ["Ann T. Lee"]);
}

fn any_line() -> impl Strategy<Value = Line> {
    let edge = -100.0..900.0_f32;
    let place = prop::option::of((edge.clone(), edge.clone(), edge.clone(), edge));
    let text = "[a-c1 .\t\u{fb01}é東•-]{0,12}";
    (text, place, 0.0..30.0_f32, any::<bool>(), any::<bool>()).prop_map(
        |(text, place, size, is_bold, is_separate)| Line {
            text,
            place: place.map(|(left, bottom, right, top)| Rect { left, bottom, right, top }),
            size,
            is_bold,
            is_separate,
            ..Line::default()
        },
    )
}

fn any_page() -> impl Strategy<Value = Page> {
    prop::collection::vec(any_line(), 0..12).prop_map(page)
}

proptest! {
    #[test]
    fn blocks_of_arbitrary_lines_are_well_formed(
        pages in prop::collection::vec(any_page(), 0..5),
        outline in prop::collection::vec(("[a-c1 .\u{fb01}é東]{0,8}", 1..4_u8, 0..6_usize), 0..6),
    ) {
        let outline: Vec<Entry> = outline
            .into_iter()
            .map(|(title, level, page)| Entry { title, level, page, top: Some(400.0) })
            .collect();
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
        let all: usize = pages.iter().flat_map(|page| &page.lines).map(|line| letters(&line.text)).sum();
        let parsed = compose(pages, &outline, vec![]).unwrap();
        lkr_parsers::conformance::assert_well_formed(&parsed);
        prop_assert!(letters(&parsed.text) >= all, "text was lost");
    }
}
