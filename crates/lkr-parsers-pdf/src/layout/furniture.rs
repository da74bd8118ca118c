//! Finds running headers and footers: lines at the edge of pages that many pages share, apart from digits.

use std::collections::HashMap;

use crate::page::{Line, Page};

/// Furniture occurs on at least this many pages. See docs/studies.md#pdf-layout.
const MIN_PAGES: usize = 3;

/// Furniture is within this part of the page height from an edge. See docs/studies.md#pdf-layout.
const MARGIN: f32 = 0.13;

/// Most lines of furniture at one edge.
const EDGE_LINES: usize = 4;

/// How far furniture may move between pages, in points. See docs/studies.md#pdf-layout.
const MAX_SHIFT: f32 = 14.0;

/// The edge of the page at which a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Edge {
    Top,
    Bottom,
}

struct Occurrence {
    page: usize,
    line: usize,
    height: Option<f32>,
}

/// Marks the lines of every page that are furniture.
pub(super) fn find(pages: &[Page]) -> Vec<Vec<bool>> {
    let mut furniture: Vec<Vec<bool>> = pages.iter().map(|page| vec![false; page.lines.len()]).collect();
    let mut shared: HashMap<(Edge, String), Vec<Occurrence>> = HashMap::new();
    for (page, content) in pages.iter().enumerate() {
        for (edge, line) in edge_lines(content) {
            let Some(text) = content.lines.get(line) else { continue };
            let height = text.place.map(|occurrence| occurrence.bottom);
            shared.entry((edge, pattern(&text.text))).or_default().push(Occurrence { page, line, height });
        }
    }
    for occurrences in shared.into_values().filter_map(running) {
        for occurrence in occurrences {
            if let Some(line) =
                furniture.get_mut(occurrence.page).and_then(|lines| lines.get_mut(occurrence.line))
            {
                *line = true;
            }
        }
    }
    if is_too_much(pages, &furniture) {
        furniture.iter_mut().for_each(|lines| lines.fill(false));
    }
    furniture
}

/// The occurrences at about the same height, if they are on enough of the pages from the first to the last of them.
fn running(mut occurrences: Vec<Occurrence>) -> Option<Vec<Occurrence>> {
    let mut heights: Vec<f32> = occurrences.iter().filter_map(|occurrence| occurrence.height).collect();
    heights.sort_by(f32::total_cmp);
    if let Some(middle) = heights.get(heights.len() / 2) {
        occurrences.retain(|occurrence| {
            occurrence.height.is_some_and(|height| (height - middle).abs() <= MAX_SHIFT)
        });
    }
    let (first, last) = (occurrences.first()?.page, occurrences.last()?.page);
    (occurrences.len() >= MIN_PAGES && occurrences.len() * 5 >= (last - first + 1) * 2).then_some(occurrences)
}

/// The outermost lines of a page.
fn edge_lines(page: &Page) -> Vec<(Edge, usize)> {
    let placed = page.frame.filter(|_| page.lines.iter().all(|line| line.place.is_some()));
    let Some(frame) = placed else {
        let count = page.lines.len();
        let top = (0..count.min(2)).map(|line| (Edge::Top, line));
        let bottom = (count.saturating_sub(2).max(2)..count).map(|line| (Edge::Bottom, line));
        return top.chain(bottom).collect();
    };
    let margin = frame.height() * MARGIN;
    let mut top = within(&page.lines, |line| line.bottom - (frame.top - margin));
    let bottom = within(&page.lines, |line| frame.bottom + margin - line.top);
    top.retain(|line| !bottom.contains(line));
    let top = top.into_iter().map(|line| (Edge::Top, line));
    top.chain(bottom.into_iter().map(|line| (Edge::Bottom, line))).collect()
}

/// The outermost lines by their distance beyond the margin.
fn within(lines: &[Line], beyond: impl Fn(crate::page::Rect) -> f32) -> Vec<usize> {
    let distances = lines.iter().enumerate().filter_map(|(at, line)| Some((at, beyond(line.place?))));
    let mut out: Vec<(usize, f32)> = distances.filter(|(_, distance)| *distance > 0.0).collect();
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    out.truncate(EDGE_LINES);
    out.into_iter().map(|(line, _)| line).collect()
}

/// The text with all numbers replaced by `#`.
fn pattern(text: &str) -> String {
    if text.len() <= 8 && text.chars().all(|c| "ivxlcIVXLC".contains(c)) {
        return "#".into();
    }
    let mut pattern = String::new();
    for c in text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase) {
        let c = if c.is_numeric() { '#' } else { c };
        if c != '#' || !pattern.ends_with('#') {
            pattern.push(c);
        }
    }
    pattern
}

/// Whether this would be most of the text, as with pages that are alike, such as forms.
fn is_too_much(pages: &[Page], furniture: &[Vec<bool>]) -> bool {
    let all: usize = pages.iter().map(Page::len).sum();
    let lines = pages.iter().zip(furniture).flat_map(|(page, marks)| page.lines.iter().zip(marks));
    let marked: usize = lines.filter(|(_, mark)| **mark).map(|(line, _)| line.text.len()).sum();
    marked * 2 > all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(texts: &[&str]) -> Page {
        Page::from_text(&texts.join("\n"))
    }

    fn found(pages: &[Page]) -> Vec<&str> {
        let marks = find(pages);
        let lines = pages.iter().zip(&marks).flat_map(|(page, marks)| page.lines.iter().zip(marks));
        lines.filter(|(_, mark)| **mark).map(|(line, _)| line.text.as_str()).collect()
    }

    #[test]
    fn repeated_lines_at_the_edge_are_furniture() {
        let body = "A body that is not the same on any page, with words enough";
        let pages: Vec<Page> = (1..=3)
            .map(|n| {
                page(&[
                    "Annual report",
                    &format!("{body}: {}", "x".repeat(n)),
                    &"and on ".repeat(n),
                    &format!("Page {n}"),
                ])
            })
            .collect();
        assert_eq!(
            found(&pages),
            ["Annual report", "Page 1", "Annual report", "Page 2", "Annual report", "Page 3"]
        );
        assert!(found(&pages[..2]).is_empty(), "two pages are too few for furniture");
    }

    #[test]
    fn identical_pages_have_no_furniture() {
        let pages = vec![page(&["Name", "Date"]); 5];
        assert!(found(&pages).is_empty());
    }

    #[test]
    fn numbers_compare_equal_in_furniture() {
        assert_eq!(pattern("Page 12 of 300"), pattern("page 3 of 4"));
        assert_eq!(pattern("xiv"), pattern("2"));
        assert_ne!(pattern("Civil law"), pattern("2"));
    }
}
