//! A look at a page's tags before it is parsed.
//!
//! Parsers of HTML need time that grows with the square of how deep elements lie in each other and of how many
//! attributes a tag has, and open formatting elements again and again where they overlap with blocks. This scan follows
//! the rules roughly, and leaves out the tags that no page needs. Words are left out only with a tag that hides them.

mod hide;
mod read;
mod styles;
mod tag;

use std::borrow::Cow;

use hide::Hidden;
use read::{Tag, begins_tag, comment, hides, raw_end, read_tag};
pub(crate) use styles::styles;
use tag::{BARRIER, BLOCK, FOREIGN, FORMATTING, FRAME, INTEGRATION, Name, RAW, TABLE, TABULAR, VOID};

/// Elements lie no deeper in each other; 38 was the deepest among some hundred real pages.
const MAX_DEPTH: usize = 512;

/// A tag has no more attributes; 70 were the most among them.
const MAX_ATTRIBUTES: usize = 256;

/// A page has no more tags, unless a parser asks for less.
pub(crate) const MAX_TAGS: usize = 600_000;

/// A page has no more `<` that begin no tag.
const MAX_STRAYS: usize = 20_000;

/// No more formatting elements are open at once.
const MAX_FORMATTING: usize = 48;

/// Formatting elements are opened again no more often.
const MAX_REOPENED: usize = 100_000;

/// The end of an element that was left out is looked for among so many of them.
const LOOK_BACK: usize = 16;

/// A page that can be parsed in reasonable time.
#[derive(Debug)]
pub(crate) struct Tamed<'a> {
    pub(crate) html: Cow<'a, str>,
    /// Whether tags or attributes were left out.
    pub(crate) is_cut: bool,
}

/// Leaves out what would make parsing slow, and all tags but the first `max_tags`.
pub(crate) fn tame(html: &str, max_tags: usize) -> Tamed<'_> {
    if html.contains(is_noise) {
        let clean: String = html.chars().filter(|c| !is_noise(*c)).collect();
        let Tamed { html, is_cut } = scan(&clean, max_tags);
        return Tamed { html: Cow::Owned(html.into_owned()), is_cut };
    }
    scan(html, max_tags)
}

/// Whether a character means nothing on a page. The parser drops it too, but keeps a record of each.
fn is_noise(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{85}')
}

fn scan(html: &str, max_tags: usize) -> Tamed<'_> {
    let mut scan = Scan { html, max_tags, ..Scan::default() };
    let mut at = 0;
    while let Some(next) = scan.step(at) {
        at = next;
    }
    if !scan.is_cut {
        return Tamed { html: Cow::Borrowed(html), is_cut: false };
    }
    scan.reveal(html.len());
    scan.keep_until(html.len());
    Tamed { html: Cow::Owned(scan.kept), is_cut: true }
}

#[derive(Debug, Default)]
struct Scan<'a> {
    html: &'a str,
    /// The page so far, up to the byte `from`, if it differs.
    kept: String,
    from: usize,
    is_cut: bool,
    tags: usize,
    max_tags: usize,
    strays: usize,
    open: Vec<Name>,
    /// Formatting elements that have no end yet, whether they are open or not.
    formatting: Vec<Name>,
    reopened: usize,
    /// Starts that were left out, whose ends are left out too.
    without: Vec<Name>,
    /// The element that is left out with all that it holds.
    hidden: Option<Hidden>,
}

impl Scan<'_> {
    /// Looks at the next tag from the byte `at` on; answers the byte after it.
    fn step(&mut self, at: usize) -> Option<usize> {
        let start = at + self.html.get(at..)?.find('<')?;
        if self.html.get(at..start).is_some_and(|text| !text.trim_ascii().is_empty()) {
            self.reopen(at);
        }
        let rest = self.html.get(start..)?;
        if rest.starts_with("<!--") {
            return Some(self.aside(start, start + comment(rest)));
        }
        if rest.starts_with("<!") || rest.starts_with("<?") {
            return Some(self.aside(start, start + rest.find('>')? + 1));
        }
        if !begins_tag(rest.as_bytes()) {
            return Some(self.stray(start));
        }
        let Some(tag) = read_tag(self.html, start) else {
            // A tag without an end is not shown, nor is what follows it.
            self.replace(start, self.html.len(), "");
            return None;
        };
        self.tags += 1;
        if tag.is_end {
            self.end(&tag, start);
            return Some(tag.end);
        }
        Some(self.start(&tag, start))
    }

    /// A comment or a declaration.
    fn aside(&mut self, start: usize, end: usize) -> usize {
        self.tags += 1;
        if self.tags > self.max_tags {
            self.replace(start, end, "");
        }
        end
    }

    /// A `<` that begins no tag. The parser keeps a record of each one that is not written as it should be.
    fn stray(&mut self, start: usize) -> usize {
        self.strays += 1;
        if self.strays > MAX_STRAYS {
            self.replace(start, start + 1, "&lt;");
        }
        start + 1
    }

    /// Takes a start tag in, or leaves it out; answers the byte to go on with.
    fn start(&mut self, tag: &Tag, start: usize) -> usize {
        let name = tag.name;
        let is_foreign = self.is_foreign();
        if name.is(RAW) && !is_foreign {
            return raw_end(self.html, tag);
        }
        let holds = !(name.is(VOID | FRAME) || (is_foreign && tag.closes_itself));
        self.give_way(name);
        if self.is_inside(start) {
            self.hide(name, holds);
            return tag.end;
        }
        let is_too_much = self.is_too_much(name, holds);
        if holds && (is_too_much || tag.too_many.is_some()) && hides(self.html, start, tag) {
            self.begin_hidden(name, start);
            return tag.end;
        }
        if is_too_much {
            // What parts words goes on to part them.
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
            if holds {
                self.without.push(name);
            }
            return tag.end;
        }
        if let Some(from) = tag.too_many {
            self.replace(from, tag.end.saturating_sub(1), " ");
        }
        if !name.is(BLOCK) {
            self.reopen(start);
        }
        if holds {
            self.open.push(name);
        }
        if name.is(FORMATTING) {
            self.formatting.push(name);
        }
        tag.end
    }

    fn is_too_much(&self, name: Name, holds: bool) -> bool {
        let formatting = self.formatting.len() >= MAX_FORMATTING || self.reopened > MAX_REOPENED;
        self.tags > self.max_tags
            || (holds && self.open.len() >= MAX_DEPTH)
            || (name.is(FORMATTING) && formatting)
    }

    /// Closes what gives way to an element.
    fn give_way(&mut self, name: Name) {
        let Some((closed, walls)) = name.gives_way() else {
            return;
        };
        let nearest = self.open.iter().rposition(|other| other.is(closed | walls));
        if let Some(at) = nearest
            && self.open.get(at).is_some_and(|other| other.is(closed))
        {
            self.open.truncate(at);
        }
    }

    fn end(&mut self, tag: &Tag, start: usize) {
        let name = tag.name;
        if self.ends_inside(tag, start) {
            return;
        }
        if name.is(FORMATTING)
            && let Some(at) = self.formatting.iter().rposition(|open| *open == name)
        {
            self.formatting.remove(at);
        }
        let recent = self.without.len().saturating_sub(LOOK_BACK);
        let left_out = self.without.iter().skip(recent).rposition(|left_out| *left_out == name);
        if let Some(at) = left_out {
            self.without.remove(recent + at);
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
            return;
        }
        if self.tags > self.max_tags && !name.is(RAW) {
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
        }
        let found = self.open.iter().rposition(|open| *open == name);
        let Some(at) = found.filter(|at| self.reaches(name, *at)) else {
            return;
        };
        if name.is(FORMATTING) {
            self.open.remove(at);
        } else {
            self.open.truncate(at);
        }
    }

    /// Whether the end of an element reaches the open one at `at`.
    fn reaches(&self, name: Name, at: usize) -> bool {
        let walls = match name {
            name if name.is(TABULAR) => TABLE,
            name if name.is(BLOCK | BARRIER | FORMATTING) => BARRIER,
            _ => BLOCK | BARRIER,
        };
        !self.open.get(at + 1..).unwrap_or_default().iter().any(|other| other.is(walls))
    }

    /// Opens the formatting elements again that a block's end has closed. `at` is where they would be.
    fn reopen(&mut self, at: usize) {
        if self.formatting.is_empty() || self.hidden.is_some() {
            return;
        }
        let open = self.open.iter().filter(|name| name.is(FORMATTING)).count();
        let lost = self.formatting.len().saturating_sub(open);
        self.reopened += lost;
        if self.reopened <= MAX_REOPENED {
            let again = self.formatting.iter().rev().take(lost).copied();
            return self.open.extend(again);
        }
        // Formatting is over, in all of the rest.
        let ends: String = self.formatting.drain(..).map(|name| format!("</{}>", name.as_str())).collect();
        self.open.retain(|name| !name.is(FORMATTING));
        self.replace(at, at, &ends);
    }

    fn is_foreign(&self) -> bool {
        let nearest = self.open.iter().rev().find(|name| name.is(FOREIGN | INTEGRATION));
        nearest.is_some_and(|name| name.is(FOREIGN))
    }

    /// Puts `instead` in the place of a range.
    fn replace(&mut self, start: usize, end: usize, instead: &str) {
        self.is_cut = true;
        if self.hidden.is_some() {
            return;
        }
        self.keep_until(start);
        self.kept.push_str(instead);
        self.from = end;
    }

    fn keep_until(&mut self, end: usize) {
        self.kept.push_str(self.html.get(self.from..end).unwrap_or_default());
        self.from = end;
    }
}

#[cfg(test)]
mod tests;
