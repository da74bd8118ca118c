//! Puts rows of tables together whose columns the engine returned one after another: figures move to the words on their
//! baseline, and the lines above a column of figures to the front of the table.

use super::tables;
use crate::page::{Line, Rect};

/// At least this many figures of a page are moved, or none.
const MIN_FIGURES: usize = 4;

/// Baselines that differ by less than this part of the font size are one.
const SAME_BASE: f32 = 0.35;

/// Most lines of a page that are compared.
const MAX_LINES: usize = 2_000;

/// The lines of a header are within this many font sizes above the first figure of its column.
const HEADER_HEIGHT: f32 = 8.0;

/// The lines with the rows of tables put together; unchanged if no row is apart.
pub(super) fn join(lines: Vec<Line>) -> Vec<Line> {
    if lines.len() > MAX_LINES {
        return lines;
    }
    let figures: Vec<usize> = (0..lines.len())
        .filter(|at| {
            lines.get(*at).is_some_and(|line| line.place.is_some() && tables::is_figures(&line.text))
        })
        .collect();
    if figures.len() < MIN_FIGURES {
        return lines;
    }
    let mut rows: Vec<Option<usize>> = vec![None; lines.len()];
    for at in &figures {
        if let Some(row) = rows.get_mut(*at) {
            *row = label(&lines, *at);
        }
    }
    let is_apart = |(at, row): (usize, &Option<usize>)| row.is_some_and(|row| at > row + 1);
    let moved = rows.iter().enumerate().filter(|pair| is_apart(*pair)).count();
    let found = rows.iter().flatten().count();
    if moved < MIN_FIGURES || found * 2 < figures.len() {
        return lines;
    }
    let headers = headers(&lines, &rows);
    downward(assemble(&lines, &rows, &headers))
}

/// The lines from top to bottom, unless two are side by side.
fn downward(lines: Vec<Line>) -> Vec<Line> {
    let mut bases: Vec<(f32, f32)> =
        lines.iter().filter_map(|line| Some((line.place?.bottom, line.size.max(1.0)))).collect();
    bases.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut pairs = bases.iter().zip(bases.iter().skip(1));
    if bases.len() < lines.len() || pairs.any(|(above, below)| above.0 - below.0 < SAME_BASE * below.1) {
        return lines;
    }
    let mut lines = lines;
    lines.sort_by(|a, b| {
        b.place.map_or(0.0, |place| place.bottom).total_cmp(&a.place.map_or(0.0, |place| place.bottom))
    });
    lines
}

/// The line with words on the baseline of some figures, to their left.
fn label(lines: &[Line], figures: usize) -> Option<usize> {
    let place = lines.get(figures)?.place?;
    let candidates = lines.iter().enumerate().filter_map(|(at, line)| {
        let other = line.place?;
        let level = (other.bottom - place.bottom).abs() < SAME_BASE * line.size.max(1.0);
        let fits = level && other.right <= place.left && line.text.contains(char::is_alphabetic);
        fits.then_some((at, other.right))
    });
    candidates.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// The lines above columns of figures that were moved.
fn headers(lines: &[Line], rows: &[Option<usize>]) -> Vec<usize> {
    let moved: Vec<Rect> =
        lines.iter().zip(rows).filter(|(_, row)| row.is_some()).filter_map(|(line, _)| line.place).collect();
    let above = |line: &Line, place: Rect| {
        let size = line.size.max(1.0);
        let is_over =
            |figure: &&Rect| place.right >= figure.left - 2.0 * size && place.left <= figure.right + size;
        let top = moved.iter().filter(is_over).map(|figure| figure.bottom).max_by(f32::total_cmp);
        top.is_some_and(|top| place.bottom > top && place.bottom - top <= HEADER_HEIGHT * size)
    };
    let narrow = |place: Rect| {
        moved.iter().any(|figure| place.right - place.left < 4.0 * (figure.right - figure.left))
    };
    let is_header = |at: usize| {
        lines.get(at).is_some_and(|line| line.place.is_some_and(|place| narrow(place) && above(line, place)))
            && rows.get(at) == Some(&None)
            && !rows.contains(&Some(at))
    };
    (0..lines.len()).filter(|at| is_header(*at)).collect()
}

/// Appends each figure to its row, and inserts the headers before the first row.
fn assemble(lines: &[Line], rows: &[Option<usize>], headers: &[usize]) -> Vec<Line> {
    let first = rows.iter().flatten().min().copied();
    let mut parts: Vec<Vec<usize>> = vec![vec![]; lines.len()];
    for (at, row) in rows.iter().enumerate() {
        if let Some(parts) = row.and_then(|row| parts.get_mut(row)) {
            parts.push(at);
        }
    }
    let left = |at: &usize| lines.get(*at).and_then(|line| line.place).map_or(0.0, |place| place.left);
    let mut joined = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        if first == Some(at) {
            joined.extend(header_rows(lines, headers));
        }
        if rows.get(at).is_some_and(Option::is_some) || headers.contains(&at) {
            continue;
        }
        let mut figures = parts.get(at).cloned().unwrap_or_default();
        figures.sort_by(|a, b| left(a).total_cmp(&left(b)));
        joined.push(figures.iter().filter_map(|at| lines.get(*at)).fold(line.clone(), append));
    }
    joined
}

/// The lines of the headers, those on one baseline as one row.
fn header_rows(lines: &[Line], headers: &[usize]) -> Vec<Line> {
    let mut parts: Vec<&Line> = headers.iter().filter_map(|at| lines.get(*at)).collect();
    let (bottom, left) = (
        |line: &Line| line.place.map_or(0.0, |place| place.bottom),
        |line: &Line| line.place.map_or(0.0, |place| place.left),
    );
    parts.sort_by(|a, b| bottom(b).total_cmp(&bottom(a)).then(left(a).total_cmp(&left(b))));
    let mut rows: Vec<Vec<&Line>> = Vec::new();
    for part in parts {
        match rows.last_mut().filter(|row| {
            row.last()
                .is_some_and(|last| (bottom(last) - bottom(part)).abs() < SAME_BASE * part.size.max(1.0))
        }) {
            Some(row) => row.push(part),
            None => rows.push(vec![part]),
        }
    }
    rows.into_iter()
        .filter_map(|mut row| {
            row.sort_by(|a, b| left(a).total_cmp(&left(b)));
            let (first, rest) = row.split_first()?;
            Some(rest.iter().fold((*first).clone(), |line, part| append(line, part)))
        })
        .collect()
}

fn append(mut line: Line, part: &Line) -> Line {
    line.text.push('\t');
    line.text.push_str(&part.text);
    line.place = line.place.zip(part.place).map(|(a, b)| a.union(b)).or(line.place);
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str, left: f32, bottom: f32) -> Line {
        let place = Rect { left, bottom, right: left + 5.0 * text.len() as f32, top: bottom + 10.0 };
        Line { text: text.into(), place: Some(place), size: 10.0, ..Line::default() }
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        join(lines).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn columns_of_figures_become_rows() {
        let (mut labels, mut figures) =
            (vec![], vec![line("August 29,", 300.0, 624.0), line("2021", 310.0, 612.0)]);
        for (at, label) in (0_u8..).zip(["Cash", "Receivables", "Inventories", "Total assets"]) {
            let bottom = 600.0 - 12.0 * f32::from(at);
            labels.push(line(label, 50.0, bottom));
            figures.push(line("1,803", 300.0, bottom));
        }
        labels.insert(0, line("BALANCE SHEETS", 200.0, 680.0));
        labels.append(&mut figures);
        let expected = [
            "BALANCE SHEETS",
            "August 29,",
            "2021",
            "Cash\t1,803",
            "Receivables\t1,803",
            "Inventories\t1,803",
            "Total assets\t1,803",
        ];
        assert_eq!(texts(labels), expected);
    }

    #[test]
    fn columns_of_prose_with_numbers_keep_their_order() {
        let lines: Vec<Line> = (0_u8..6)
            .flat_map(|column| {
                (0_u8..6).map(move |at| {
                    line("words of 12 columns", 50.0 + 90.0 * f32::from(column), 600.0 - 12.0 * f32::from(at))
                })
            })
            .collect();
        let expected: Vec<String> = lines.iter().map(|line| line.text.clone()).collect();
        assert_eq!(texts(lines), expected);
    }

    proptest! {
        #[test]
        fn rows_lose_no_text(places in prop::collection::vec((0..5_u8, 0..6_u8, "[a-b1-3]{1,3}"), 0..40)) {
            let lines: Vec<Line> =
                places.iter().map(|(x, y, text)| line(text, f32::from(*x) * 40.0, f32::from(*y) * 12.0)).collect();
            let mut expected: Vec<&str> = places.iter().map(|(.., text)| text.as_str()).collect();
            let joined = texts(lines);
            let mut found: Vec<&str> = joined.iter().flat_map(|text| text.split('\t')).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
