//! Headings from the outline: where on its page an entry's title stands.

use lkr_parsers::MAX_TEXT_BYTES;

use super::{Heading, Sheet, words};
use crate::{outline::Entry, page::Line};

/// The most lines that a title is broken into.
const MAX_LINES: usize = 4;

/// Titles that no page shows stand in the text as long as they make up no more than one part in this many of it.
const ADDED_PART: usize = 25;

/// What stands for the other titles that no page shows.
const MARK: &str = "§";

/// Bytes of lines that are compared for one document; after that a title is looked for no more.
const MAX_COMPARED: usize = 100_000_000;

/// Marks the lines that the entries of the outline lead to.
pub(super) fn find(sheets: &mut [Sheet], outline: &[Entry]) {
    let text: usize = sheets.iter().flat_map(|sheet| &sheet.lines).map(|line| line.text.len()).sum();
    let mut room = if text == 0 { MAX_TEXT_BYTES } else { text / ADDED_PART };
    let mut compared = 0;
    let mut by_page: Vec<Vec<&Entry>> = vec![vec![]; sheets.len()];
    for entry in outline {
        if let Some(entries) = by_page.get_mut(entry.page) {
            entries.push(entry);
        }
    }
    for (sheet, entries) in sheets.iter_mut().zip(by_page) {
        if entries.is_empty() {
            continue;
        }
        let mut finder = Finder::new(sheet);
        for entry in entries {
            compared += finder.bytes;
            let shown = (compared < MAX_COMPARED).then(|| finder.shown(sheet, entry)).flatten();
            let heading = shown.unwrap_or_else(|| {
                let left = room.checked_sub(entry.title.len());
                room = left.unwrap_or(room);
                finder.unseen(sheet, entry, left.is_some())
            });
            sheet.headings.push(heading);
        }
        finder.mark(sheet);
    }
}

/// What is known of a page while its titles are looked for.
struct Finder {
    /// The lines as they are compared.
    keys: Vec<String>,
    /// How long they are together.
    bytes: usize,
    taken: Vec<bool>,
    /// The line behind the heading found last.
    next: usize,
}

/// Where a title stands, and how good that place is.
struct Found {
    score: f32,
    first: usize,
    count: usize,
    /// How many characters of the key of the last line belong to it, if not all.
    part: Option<usize>,
}

impl Finder {
    fn new(sheet: &Sheet) -> Self {
        let keys: Vec<String> = sheet.lines.iter().map(|line| words::key(&line.text)).collect();
        let bytes = keys.iter().map(|key| key.len() + 1).sum();
        Self { keys, bytes, taken: vec![false; sheet.lines.len()], next: 0 }
    }

    /// The heading that an entry leads to, where the page shows it.
    fn shown(&mut self, sheet: &Sheet, entry: &Entry) -> Option<Heading> {
        let title = words::key(&entry.title);
        if title.is_empty() {
            return None;
        }
        let short = words::unnumbered(&entry.title);
        let best = (0..self.keys.len())
            .filter_map(|first| self.at(sheet, entry, first, &title, &short))
            .max_by(|a, b| a.score.total_cmp(&b.score))?;
        let lines = best.first..best.first + best.count;
        self.taken.get_mut(lines.clone())?.fill(true);
        self.next = lines.end;
        let last = sheet.lines.get(lines.end.checked_sub(1)?)?;
        let end = best.part.map(|count| words::end_of_key(&last.text, count));
        Some(Heading { level: entry.level, title: tidy(&entry.title), lines, end, instead: None })
    }

    /// How well the title fits the lines from `first` on.
    fn at(&self, sheet: &Sheet, entry: &Entry, first: usize, title: &str, short: &str) -> Option<Found> {
        let key = self.keys.get(first).filter(|key| !key.is_empty())?;
        if *self.taken.get(first)? || !may_fit(key, title, short) {
            return None;
        }
        let mut text = String::new();
        let mut best: Option<Found> = None;
        for count in 1..=MAX_LINES {
            let at = first + count - 1;
            let (Some(key), Some(false)) = (self.keys.get(at), self.taken.get(at)) else { break };
            let before = text.len();
            text.push_str(key);
            let Some((score, part)) = fit(&text, before, title, short, sheet.lines.get(at)) else {
                if text.len() > title.len() + 16 {
                    break;
                }
                continue;
            };
            if best.as_ref().is_none_or(|best| best.score < score) {
                best = Some(Found { score, first, count, part });
            }
        }
        let mut best = best?;
        best.score += self.standing(sheet, entry, first);
        (best.score >= 40.0).then_some(best)
    }

    /// What speaks for a line besides its words.
    fn standing(&self, sheet: &Sheet, entry: &Entry, first: usize) -> f32 {
        let Some(line) = sheet.lines.get(first) else { return 0.0 };
        let far = entry.top.zip(line.place).map_or(100.0, |(top, place)| (place.top - top).abs());
        let near = 8.0 * (1.0 - far / 100.0).max(0.0);
        let order = if first >= self.next { 3.0 } else { 0.0 };
        let look = (line.size / 4.0).min(6.0) + if line.bold { 2.0 } else { 0.0 };
        let furniture = if sheet.furniture.get(first) == Some(&true) { -20.0 } else { 0.0 };
        near + order + look + furniture
    }

    /// The heading for an entry whose title the page does not show: as text, or as a mark.
    fn unseen(&mut self, sheet: &Sheet, entry: &Entry, as_text: bool) -> Heading {
        let under = |line: &Line| match (line.place, entry.top) {
            (Some(place), Some(top)) => place.bottom < top,
            _ => true,
        };
        let shown = sheet.lines.iter().zip(&sheet.furniture).zip(&self.taken);
        let mut open = shown.enumerate().filter(|(_, ((_, furniture), taken))| !**furniture && !**taken);
        let at = open.find(|(at, ((line, _), _))| *at >= self.next && under(line)).map(|(at, _)| at);
        let at = at.unwrap_or(self.next);
        self.next = at;
        let title = tidy(&entry.title);
        let instead = Some(if as_text { title.clone() } else { MARK.to_owned() });
        Heading { level: entry.level, title, lines: at..at, end: None, instead }
    }

    /// Headings are no furniture, and stand in the order of their lines.
    fn mark(self, sheet: &mut Sheet) {
        sheet.headings.sort_by_key(|heading| (heading.lines.start, heading.lines.end));
        for (furniture, taken) in sheet.furniture.iter_mut().zip(&self.taken) {
            *furniture &= !taken;
        }
    }
}

/// A first look that spares the comparison of most lines.
fn may_fit(key: &str, title: &str, short: &str) -> bool {
    title.starts_with(key)
        || short.starts_with(key)
        || key.contains(title)
        || key.contains(short)
        || title.ends_with(key)
        || short.len() >= 4 && short.get(..4).is_some_and(|head| key.contains(head))
}

/// How well the text of some lines fits a title, and how many characters of the last line's key belong to it. The last
/// line's key begins at `last`.
fn fit(
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
    if let Some(found) = [title, short].into_iter().find_map(|title| run_in(text, last, title, line)) {
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

/// A title that the text goes on behind, on the same line.
fn run_in(text: &str, last: usize, title: &str, line: Option<&Line>) -> Option<(f32, Option<usize>)> {
    if title.len() < 3 || title.len() <= last || !text.starts_with(title) {
        return None;
    }
    let count = title.get(last..)?.chars().count();
    let line = line?;
    let end = words::end_of_key(&line.text, count);
    let (head, tail) = line.text.split_at_checked(end)?;
    let whole =
        head.ends_with(|c: char| !c.is_alphanumeric()) || !tail.starts_with(|c: char| c.is_alphanumeric());
    let more = tail.chars().filter(|c| c.is_alphanumeric()).count();
    let lead = if line.size > 0.0 && more < 4 { 75.0 } else { 70.0 };
    whole.then_some((lead, Some(count)))
}

/// Whether a key is a number, in figures or Roman.
fn is_count(key: &str) -> bool {
    !key.is_empty() && key.len() <= 6 && key.chars().all(|c| c.is_ascii_digit() || "ivxlc".contains(c))
}

/// A title in one line.
fn tidy(title: &str) -> String {
    crate::page::clean(title)
}
