use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn run(text: &str, left: f32, bottom: f32) -> Run<'_> {
    let place = Rect { left, bottom, right: left + 5.0 * text.len() as f32, top: bottom + 10.0 };
    Run {
        text: Cow::Borrowed(text),
        place,
        size: 10.0,
        is_bold: false,
        is_pale: false,
        is_undrawn: false,
        is_horizontal: true,
    }
}

fn order<'a>(runs: Vec<Run<'a>>) -> Vec<Cow<'a, str>> {
    join_split_lines(runs).into_iter().map(|run| run.text).collect()
}

/// A column of three lines.
fn column(left: f32, top: f32) -> Vec<Run<'static>> {
    let texts = ["one line of a column", "two lines of a column", "three of a column"];
    texts.iter().zip([0.0, 12.0, 24.0]).map(|(text, down)| run(text, left, top - down)).collect()
}

#[test]
fn line_split_at_the_gutter_is_joined_and_separates_the_columns() {
    let (left, right) = (column(50.0, 600.0), column(200.0, 600.0));
    let first = vec![run("a line that is wide enou", 60.0, 700.0)];
    let fallback_pages = vec![run("to cross the gutter", 183.0, 700.0)];
    let order = order([first, left, fallback_pages, right].into_iter().flatten().collect());
    assert_eq!(order[..2], ["a line that is wide enou", "to cross the gutter"], "{order:?}");
    assert_eq!(order.len(), 8);
}

#[test]
fn columns_without_a_crossing_line_keep_their_order() {
    let runs = || [column(200.0, 600.0), column(50.0, 600.0)].into_iter().flatten().collect::<Vec<_>>();
    let expected: Vec<_> = runs().into_iter().map(|run| run.text).collect();
    assert_eq!(order(runs()), expected);
}

#[test]
fn adjacent_columns_with_a_narrow_gutter_are_not_joined() {
    // The common left edge of the right lines distinguishes the gutter from a gap between words.
    let left: Vec<_> =
        (0..5_u8).map(|at| run("left of the edge", 50.0, 600.0 - 12.0 * f32::from(at))).collect();
    let right: Vec<_> =
        (0..5_u8).map(|at| run("right of the edge", 133.0, 600.0 - 12.0 * f32::from(at))).collect();
    let order = order(left.into_iter().chain(right).collect());
    assert!(order[..5].iter().all(|text| text == "left of the edge"), "{order:?}");
}

proptest! {
    #[test]
    fn columns_lose_no_run(places in prop::collection::vec((0..6_u8, 0..8_u8, "[a-c ]{0,14}"), 0..40)) {
        let runs = places.iter().map(|(x, y, text)| run(text, f32::from(*x) * 37.0, f32::from(*y) * 6.0)).collect();
        let mut found = order(runs);
        let mut expected: Vec<&str> = places.iter().map(|(.., text)| text.as_str()).collect();
        found.sort();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
