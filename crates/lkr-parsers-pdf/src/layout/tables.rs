//! Finds tables: consecutive rows of cells, with lines between them such as `Current assets:`, and the header above the
//! first row with figures.

use std::ops::Range;

use crate::page::Line;

/// Most lines without cells between two rows of a table.
const MAX_BETWEEN: usize = 2;

/// Most characters of a line between rows, or of a line of a header.
const MAX_CHARS: usize = 100;

/// Most lines above the first row that belong to the header.
const MAX_ABOVE: usize = 3;

/// Rows further apart than this many times the font size are no rows of one table.
const MAX_STEP: f32 = 3.5;

/// A table of consecutive lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// The lines of its header; empty if it has none.
    pub(super) header: Range<usize>,
    /// The lines of its rows, and those between them.
    pub(super) rows: Range<usize>,
}

/// The tables among the lines, in order.
pub(super) fn find(lines: &[&Line]) -> Vec<Table> {
    let cells: Vec<Vec<String>> = lines.iter().map(|line| cells(&line.text)).collect();
    let mut tables: Vec<Table> = Vec::new();
    let (mut at, mut free) = (0, 0);
    while at < lines.len() {
        let Some(end) = end_of_table(lines, &cells, at) else {
            at += 1;
            continue;
        };
        let table = with_header(lines, &cells, at..end, free);
        (at, free) = (end, end);
        tables.push(table);
    }
    tables
}

/// The end of the table whose first row is the line at `start`.
fn end_of_table(lines: &[&Line], cells: &[Vec<String>], start: usize) -> Option<usize> {
    let row = |at: usize| cells.get(at).is_some_and(|cells| cells.len() > 1);
    // A line whose figures follow its words without a wide gap is a row only beside rows with as many figures.
    let is_drawn = |at: usize| lines.get(at).is_some_and(|line| line.has_cells());
    let follows = |before: usize, at: usize| row(at) && (is_drawn(at) || same_figures(cells, before, at));
    if !row(start) || !(is_drawn(start) || follows(start + 1, start) && is_drawn(start + 1)) {
        return None;
    }
    let (mut end, mut rows) = (start + 1, 1);
    loop {
        let next =
            (end..=end + MAX_BETWEEN).find(|at| follows(end - 1, *at) || follows(last_row(cells, end), *at));
        let Some(next) = next.filter(|next| *next < lines.len()) else { break };
        let between = end..next;
        let joins =
            between.is_empty() || has_figure(cells.get(next)) && between.clone().all(|at| is_stub(lines, at));
        if !joins || (end..=next).any(|at| !is_near(lines, at)) {
            break;
        }
        (end, rows) = (next + 1, rows + 1);
    }
    (rows > 1).then_some(end)
}

/// The last row before a line.
fn last_row(cells: &[Vec<String>], end: usize) -> usize {
    (0..end)
        .rev()
        .take(MAX_BETWEEN + 1)
        .find(|at| cells.get(*at).is_some_and(|cells| cells.len() > 1))
        .unwrap_or(end)
}

/// Whether two lines have equally many figures.
fn same_figures(cells: &[Vec<String>], one: usize, other: usize) -> bool {
    let count =
        |at: usize| cells.get(at).map_or(0, |cells| cells.iter().filter(|cell| is_figure(cell)).count());
    count(one) > 0 && count(one) == count(other)
}

/// Whether the line may be between rows: short, and not the end of a sentence.
fn is_stub(lines: &[&Line], at: usize) -> bool {
    lines.get(at).is_some_and(|line| {
        line.text.chars().count() <= MAX_CHARS
            && !line.text.ends_with(['.', ';', '\u{3002}'])
            && !super::blocks::is_item(&line.text)
    })
}

/// Whether a line follows the one above like a row of the same table.
fn is_near(lines: &[&Line], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| lines.get(before));
    let (Some(before), Some(line)) = (before, lines.get(at)) else { return false };
    let (Some(above), Some(place)) = (before.place, line.place) else { return !line.is_separate };
    let step = above.bottom - place.bottom;
    step > -0.5 * line.size.max(1.0) && step <= MAX_STEP * line.size.max(before.size).max(1.0)
}

/// Separates the header of a table: its rows before the first figure, and short lines directly above that have a year or are
/// in brackets, with a title above them. `free` is the first line that may belong to it.
fn with_header(lines: &[&Line], cells: &[Vec<String>], rows: Range<usize>, free: usize) -> Table {
    let first = rows.clone().find(|at| has_figure(cells.get(*at)));
    let Some(first) = first.filter(|first| *first + 1 < rows.end) else {
        return Table { header: rows.start..rows.start, rows };
    };
    let is_label = |at: usize| {
        lines.get(at).is_some_and(|line| {
            line.text.starts_with(['(', '[']) || line.text.split(|c: char| !c.is_ascii_digit()).any(is_year)
        })
    };
    let may_be = |at: usize| {
        is_stub(lines, at)
            && lines.get(at).is_some_and(|line| !line.text.ends_with([':', ',']))
            && is_near(lines, at + 1)
    };
    let mut start = rows.start;
    let mut is_labelled = start < first;
    while start > free
        && rows.start - start < MAX_ABOVE
        && may_be(start - 1)
        && (is_label(start - 1) || is_labelled)
    {
        is_labelled |= is_label(start - 1);
        start -= 1;
    }
    Table { header: start..first, rows: first..rows.end }
}

/// Whether a row has a figure that is not a year.
fn has_figure(cells: Option<&Vec<String>>) -> bool {
    cells.is_some_and(|cells| {
        cells.len() > 1 && cells.iter().skip(1).any(|cell| is_figure(cell) && !is_year(cell))
    })
}

fn is_year(text: &str) -> bool {
    text.len() == 4
        && (text.starts_with("19") || text.starts_with("20"))
        && text.chars().all(|c| c.is_ascii_digit())
}

/// The cells of a line: separated by wide gaps, and figures at the end of a cell by themselves. A currency sign belongs to the
/// figure after it.
pub(super) fn cells(text: &str) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    let mut sign: Option<&str> = None;
    for part in text.split('\t') {
        let words: Vec<&str> = part.split(' ').filter(|word| !word.is_empty()).collect();
        let figures = words.iter().rev().take_while(|word| is_figure(word) || is_sign(word)).count();
        let (label, figures) = words.split_at(words.len() - figures);
        // A single number after words is part of them: `Note 5`, `December 31`.
        let is_split = label.is_empty()
            || figures.iter().filter(|figure| !is_sign(figure)).count() > 1
            || figures.first().is_some_and(|figure| is_sign(figure));
        let (label, figures) =
            if is_split { (label, figures) } else { (words.as_slice(), Default::default()) };
        if !label.is_empty() {
            cells.push(sign.take().into_iter().chain(label.iter().copied()).collect::<Vec<_>>().join(" "));
        }
        for figure in figures {
            if is_sign(figure) {
                sign = Some(figure);
            } else if is_tail(figure)
                && let Some(last) = cells.last_mut()
            {
                last.push_str(figure);
            } else {
                cells.push(sign.take().into_iter().chain([*figure]).collect::<Vec<_>>().join(" "));
            }
        }
    }
    cells.extend(sign.map(str::to_owned));
    cells
}

/// Whether a text has figures and nothing else.
pub(super) fn is_figures(text: &str) -> bool {
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty() && !is_sign(word)).peekable();
    words.peek().is_some() && words.all(is_figure)
}

/// Whether a word is a figure: digits with their separators, signs and brackets, or a dash for none.
fn is_figure(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| is_sign_char(c) || c == ' ');
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let others = word.chars().all(|c| c.is_ascii_digit() || "()[].,%-+\u{2212}\u{2013}".contains(c));
    matches!(word, "\u{2014}" | "\u{2013}" | "-" | "\u{2014}%") || is_tail(word) || digits > 0 && others
}

/// Whether a word ends the figure before it.
fn is_tail(word: &str) -> bool {
    matches!(word, "%" | ")" | ")%")
}

fn is_sign(word: &str) -> bool {
    !word.is_empty() && word.chars().all(is_sign_char)
}

fn is_sign_char(c: char) -> bool {
    matches!(c, '$' | '\u{20ac}' | '\u{a3}' | '\u{a5}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_separated_and_signs_belong_to_figures() {
        for (text, expected) in [
            ("Net income\t$\t5,363 $\t4,869 $ 5,058", &["Net income", "$ 5,363", "$ 4,869", "$ 5,058"][..]),
            ("Net income $ 5,363 $ 4,869", &["Net income", "$ 5,363", "$ 4,869"]),
            ("(Millions)\t2018 2017", &["(Millions)", "2018", "2017"]),
            ("Growth\t2.5 %\t(1.0 )%", &["Growth", "2.5%", "(1.0)%"]),
            ("December 31", &["December 31"]),
            ("Note 5\tOther", &["Note 5", "Other"]),
            ("None\t\u{2014}\t12", &["None", "\u{2014}", "12"]),
        ] {
            assert_eq!(cells(text), expected, "{text}");
        }
    }
}
