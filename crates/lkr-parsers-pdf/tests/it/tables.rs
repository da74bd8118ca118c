//! Tables: rows of cells, headers, and columns that the file draws one after another.

use lkr_domain::{BlockKind, Parsed};

use crate::common::{Pdf, check, line, text};

const LABELS: [&str; 5] = ["Cash", "Receivables", "Inventories", "Other assets", "Total assets"];

/// The texts of the tables' headers and rows.
fn tables(parsed: &Parsed) -> Vec<(bool, &str)> {
    let tables = parsed.blocks.iter().filter_map(|block| match block.kind {
        BlockKind::TableHeader => Some((true, &parsed.text[block.range.clone()])),
        BlockKind::Table => Some((false, &parsed.text[block.range.clone()])),
        _ => None,
    });
    tables.collect()
}

const EXPECTED: [(bool, &str); 2] = [
    (true, "(in millions) | 2021 | 2020"),
    (
        false,
        "Cash | $ 1,120 | $ 2,230\nReceivables | 1,121 | 2,231\nInventories | 1,122 | 2,232\n\
         Other assets | 1,123 | 2,233\nTotal assets | 1,124 | 2,234",
    ),
];

/// The heights of the rows, and their figures in a column that begins with this digit.
fn column(first: u32) -> impl Iterator<Item = (u32, String)> {
    (0..5).map(move |at| {
        let sign = if at == 0 { "$ " } else { "" };
        (600 - 14 * at, format!("{sign}{first},{first}{}", 20 + 10 * (first - 1) + at))
    })
}

fn figures(x: u32, first: u32) -> String {
    let header = text('R', 10, (x, 620), &format!("{}", 2022 - first));
    column(first).fold(header, |page, (y, figure)| page + &text('R', 10, (x, y), &figure))
}

fn labels() -> String {
    let header = text('R', 10, (50, 620), "(in millions)");
    (0..).zip(LABELS).fold(header, |page, (at, label)| page + &text('R', 10, (50, 600 - 14 * at), label))
}

fn around(table: &str) -> Vec<u8> {
    let before = line(10, 700, "The balance sheet of the company tells what it owns at the end of the year.");
    let after = line(10, 400, "The notes are a part of this statement, and tell how the figures came about.");
    Pdf::default().page(&(before + table + &after)).bytes()
}

#[test]
fn columns_drawn_one_after_another_are_rows_with_a_header() {
    let bytes = around(&(labels() + &figures(300, 1) + &figures(400, 2)));
    check(&bytes, |name, parsed| assert_eq!(tables(parsed), EXPECTED, "{name}: {}", parsed.text));
}

#[test]
fn lines_between_rows_belong_to_the_table() {
    let mut table = String::new();
    for (at, label) in (0..).zip(LABELS) {
        let y = 600 - 28 * at;
        table += &text('R', 10, (50, y + 14), &format!("{label} of the group:"));
        table += &text('R', 10, (50, y), label);
        table += &text('R', 10, (300, y), &format!("1,12{at}"));
        table += &text('R', 10, (400, y), &format!("2,23{at}"));
    }
    check(&around(&table), |name, parsed| {
        let found = tables(parsed);
        let [(false, rows)] = found[..] else { panic!("{name}: {found:?}") };
        assert!(
            rows.starts_with("Cash | 1,120 | 2,230\nReceivables of the group:\nReceivables | 1,121"),
            "{rows}"
        );
        assert!(rows.ends_with("Total assets | 1,124 | 2,234"), "{name}: {rows}");
    });
}

#[test]
fn prose_in_two_columns_is_no_table() {
    let column = |x: u32| -> String {
        (0..10)
            .map(|at| text('R', 10, (x, 600 - 12 * at), "In 2018 the firm sold 12 and bought 15 of them"))
            .collect()
    };
    let bytes = around(&(column(40) + &column(330)));
    check(&bytes, |name, parsed| assert_eq!(tables(parsed), [], "{name}: {}", parsed.text));
}
