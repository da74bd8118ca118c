//! Finds the titles of outline entries on their pages.

use lkr_parsers::MAX_TEXT_BYTES;

use super::{Heading, LayoutPage, words};
use crate::{outline::Entry, page::Line};

/// Most lines of a title.
const MAX_LINES: usize = 4;

/// Titles that their pages do not show are added to the text up to one part in this many of it.
const ADDED_PART: usize = 25;

/// The replacement for further titles that their pages do not show.
const MARK: &str = "§";

/// Most bytes of lines that are compared for one document. Further titles are not searched.
const MAX_COMPARED: usize = 100_000_000;

/// Finds the headings of all entries of the outline.
pub(super) fn find(page_layouts: &mut [LayoutPage], outline: &[Entry]) {
    let text: usize =
        page_layouts.iter().flat_map(|page_layout| &page_layout.lines).map(|line| line.text.len()).sum();
    let mut bytes_left = if text == 0 { MAX_TEXT_BYTES } else { text / ADDED_PART };
    let mut compared = 0;
    let mut by_page: Vec<Vec<&Entry>> = vec![vec![]; page_layouts.len()];
    for entry in outline {
        if let Some(entries) = by_page.get_mut(entry.page) {
            entries.push(entry);
        }
    }
    for (page_layout, entries) in page_layouts.iter_mut().zip(by_page) {
        if entries.is_empty() {
            continue;
        }
        let mut finder = TitleFinder::new(page_layout);
        for entry in entries {
            compared += finder.bytes;
            let found = (compared < MAX_COMPARED).then(|| finder.find_heading(page_layout, entry)).flatten();
            let heading = found.unwrap_or_else(|| {
                let left = bytes_left.checked_sub(entry.title.len());
                bytes_left = left.unwrap_or(bytes_left);
                finder.unshown_heading(page_layout, entry, left.is_some())
            });
            page_layout.headings.push(heading);
        }
        finder.mark(page_layout);
    }
}

/// The state of the search for titles on a page.
struct TitleFinder {
    /// The normalized lines.
    keys: Vec<String>,
    /// The total length of the keys.
    bytes: usize,
    is_used: Vec<bool>,
    /// The line after the last heading that was found.
    next: usize,
}

/// A candidate position of a title with its score.
struct TitleMatch {
    score: f32,
    first: usize,
    count: usize,
    /// How many characters of the last line's key belong to it, if not all.
    part: Option<usize>,
}

impl TitleFinder {
    fn new(page_layout: &LayoutPage) -> Self {
        let keys: Vec<String> = page_layout.lines.iter().map(|line| words::key(&line.text)).collect();
        let bytes = keys.iter().map(|key| key.len() + 1).sum();
        Self { keys, bytes, is_used: vec![false; page_layout.lines.len()], next: 0 }
    }

    /// The heading of an entry, if the page shows its title.
    fn find_heading(&mut self, page_layout: &LayoutPage, entry: &Entry) -> Option<Heading> {
        let title = words::key(&entry.title);
        if title.is_empty() {
            return None;
        }
        let short = words::unnumbered(&entry.title);
        let best = (0..self.keys.len())
            .filter_map(|first| self.at(page_layout, entry, first, &title, &short))
            .max_by(|a, b| a.score.total_cmp(&b.score))?;
        let lines = best.first..best.first + best.count;
        self.is_used.get_mut(lines.clone())?.fill(true);
        self.next = lines.end;
        let last = page_layout.lines.get(lines.end.checked_sub(1)?)?;
        let end = best.part.map(|count| words::end_of_key(&last.text, count));
        Some(Heading { level: entry.level, title: tidy(&entry.title), lines, end, replacement: None })
    }

    /// The best match of the title with the lines from `first` on.
    fn at(
        &self,
        page_layout: &LayoutPage,
        entry: &Entry,
        first: usize,
        title: &str,
        short: &str,
    ) -> Option<TitleMatch> {
        let key = self.keys.get(first).filter(|key| !key.is_empty())?;
        if *self.is_used.get(first)? || !may_match(key, title, short) {
            return None;
        }
        let mut text = String::new();
        let mut best: Option<TitleMatch> = None;
        for count in 1..=MAX_LINES {
            let at = first + count - 1;
            let (Some(key), Some(false)) = (self.keys.get(at), self.is_used.get(at)) else { break };
            let before = text.len();
            text.push_str(key);
            let Some((score, part)) = score_of(&text, before, title, short, page_layout.lines.get(at)) else {
                if text.len() > title.len() + 16 {
                    break;
                }
                continue;
            };
            if best.as_ref().is_none_or(|best| best.score < score) {
                best = Some(TitleMatch { score, first, count, part });
            }
        }
        let mut best = best?;
        best.score += self.position_score(page_layout, entry, first);
        (best.score >= 40.0).then_some(best)
    }

    /// The score of a line apart from its words.
    fn position_score(&self, page_layout: &LayoutPage, entry: &Entry, first: usize) -> f32 {
        let Some(line) = page_layout.lines.get(first) else { return 0.0 };
        let far = entry.top.zip(line.place).map_or(100.0, |(top, place)| (place.top - top).abs());
        let near = 8.0 * (1.0 - far / 100.0).max(0.0);
        let order = if first >= self.next { 3.0 } else { 0.0 };
        let style = (line.size / 4.0).min(6.0) + if line.is_bold { 2.0 } else { 0.0 };
        let furniture = if page_layout.furniture.get(first) == Some(&true) { -20.0 } else { 0.0 };
        near + order + style + furniture
    }

    /// The heading of an entry whose title the page does not show: as text, or as a mark.
    fn unshown_heading(&mut self, page_layout: &LayoutPage, entry: &Entry, as_text: bool) -> Heading {
        let under = |line: &Line| match (line.place, entry.top) {
            (Some(place), Some(top)) => place.bottom < top,
            _ => true,
        };
        let lines = page_layout.lines.iter().zip(&page_layout.furniture).zip(&self.is_used);
        let mut open = lines.enumerate().filter(|(_, ((_, furniture), is_used))| !**furniture && !**is_used);
        let at = open.find(|(at, ((line, _), _))| *at >= self.next && under(line)).map(|(at, _)| at);
        let at = at.unwrap_or(self.next);
        self.next = at;
        let title = tidy(&entry.title);
        let replacement = Some(if as_text { title.clone() } else { MARK.to_owned() });
        Heading { level: entry.level, title, lines: at..at, end: None, replacement }
    }

    /// Sorts the headings by their lines, and removes their lines from the furniture.
    fn mark(self, page_layout: &mut LayoutPage) {
        page_layout.headings.sort_by_key(|heading| (heading.lines.start, heading.lines.end));
        for (furniture, is_used) in page_layout.furniture.iter_mut().zip(&self.is_used) {
            *furniture &= !is_used;
        }
    }
}

/// A fast check that excludes most lines.
fn may_match(key: &str, title: &str, short: &str) -> bool {
    title.starts_with(key)
        || short.starts_with(key)
        || key.contains(title)
        || key.contains(short)
        || title.ends_with(key)
        || short.len() >= 4 && short.get(..4).is_some_and(|head| key.contains(head))
}

/// The score of some lines for a title, and how many characters of the last line's key belong to it. The last
/// line's key begins at `last`.
fn score_of(
    text: &str,
    last: usize,
    title: &str,
    short: &str,
    line: Option<&Line>,
) -> Option<(f32, Option<usize>)> {
    if text == title {
        return Some((100.0, None));
    }
    if text == short || text.ends_with(short) && is_count(text.strip_suffix(short)?) {
        return Some((95.0, None));
    }
    if let Some(found) = [title, short].into_iter().find_map(|title| match_start(text, last, title, line)) {
        return Some(found);
    }
    if short.len() >= 3 && text.ends_with(short) && text.len() <= short.len() + 12 {
        return Some((80.0, None));
    }
    if title.len() >= 4 && text.contains(title) && text.len() <= title.len() * 2 {
        return Some((65.0, None));
    }
    let part = text.len() >= 4 && text.len() * 2 > title.len();
    (part && (title.starts_with(text) || title.ends_with(text)))
        .then(|| (60.0 * text.len() as f32 / title.len() as f32, None))
}

/// A title that is followed by text on the same line.
fn match_start(text: &str, last: usize, title: &str, line: Option<&Line>) -> Option<(f32, Option<usize>)> {
    if title.len() < 3 || title.len() <= last || !text.starts_with(title) {
        return None;
    }
    let count = title.get(last..)?.chars().count();
    let line = line?;
    let end = words::end_of_key(&line.text, count);
    let (head, tail) = line.text.split_at_checked(end)?;
    let ends_word =
        head.ends_with(|c: char| !c.is_alphanumeric()) || !tail.starts_with(|c: char| c.is_alphanumeric());
    let more = tail.chars().filter(|c| c.is_alphanumeric()).count();
    let lead = if line.size > 0.0 && more < 4 { 75.0 } else { 70.0 };
    ends_word.then_some((lead, Some(count)))
}

/// Whether a key is a decimal or Roman number.
fn is_count(key: &str) -> bool {
    !key.is_empty() && key.len() <= 6 && key.chars().all(|c| c.is_ascii_digit() || "ivxlc".contains(c))
}

/// A title on one line.
fn tidy(title: &str) -> String {
    crate::page::clean(title)
}
