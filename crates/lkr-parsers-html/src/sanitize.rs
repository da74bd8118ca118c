//! A look at a page's tags before it is parsed.
//!
//! Parsers of HTML need time that grows with the square of how deep elements lie in each other and of how many
//! attributes a tag has, and open formatting elements again and again where they overlap with blocks. This scan follows
//! the rules roughly, and leaves out the tags that no page needs. Words are left out only with a tag that hides them.

mod hidden;
mod name;
mod styles;
mod tag;

use std::borrow::Cow;

use hidden::HiddenElement;
use name::{BARRIER, BLOCK, DOCUMENT, FOREIGN, FORMATTING, INTEGRATION, RAW, TABLE, TABULAR, TagName, VOID};
pub(crate) use styles::find_styles;
use tag::{Tag, comment_end, hides_content, parse_tag, raw_text_end, starts_tag};

/// Elements lie no deeper in each other; 38 was the deepest among some hundred real pages.
const MAX_DEPTH: usize = 512;

/// A tag has no more attributes; 70 were the most among them.
const MAX_ATTRIBUTES: usize = 256;

/// A page has no more tags, unless a parser asks for less.
pub(crate) const MAX_TAGS: usize = 600_000;

/// A page has no more `<` that begin no tag.
const MAX_STRAY_BRACKETS: usize = 20_000;

/// No more formatting elements are open at once.
const MAX_FORMATTING: usize = 48;

/// Formatting elements are opened again no more often.
const MAX_REOPENED: usize = 100_000;

/// The end of an element that was left out is looked for among so many of them.
const MAX_UNMATCHED: usize = 16;

/// A page that can be parsed in reasonable time.
#[derive(Debug)]
pub(crate) struct Sanitized<'a> {
    pub(crate) html: Cow<'a, str>,
    /// Whether tags or attributes were left out.
    pub(crate) is_truncated: bool,
}

/// Leaves out what would make parsing slow, and all tags but the first `max_tags`.
pub(crate) fn sanitize(html: &str, max_tags: usize) -> Sanitized<'_> {
    if html.contains(is_dropped_control) {
        let clean: String = html.chars().filter(|c| !is_dropped_control(*c)).collect();
        let Sanitized { html, is_truncated } = scan(&clean, max_tags);
        return Sanitized { html: Cow::Owned(html.into_owned()), is_truncated };
    }
    scan(html, max_tags)
}

/// Whether a character means nothing on a page. The parser drops it too, but keeps a record of each.
fn is_dropped_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{85}')
}

fn scan(html: &str, max_tags: usize) -> Sanitized<'_> {
    let mut scan = Sanitizer { html, max_tags, ..Sanitizer::default() };
    let mut at = 0;
    while let Some(next) = scan.next_tag(at) {
        at = next;
    }
    if !scan.is_truncated {
        return Sanitized { html: Cow::Borrowed(html), is_truncated: false };
    }
    scan.show(html.len());
    scan.copy_until(html.len());
    Sanitized { html: Cow::Owned(scan.output), is_truncated: true }
}

#[derive(Debug, Default)]
struct Sanitizer<'a> {
    html: &'a str,
    /// The page so far, up to the byte `copied_to`, if it differs.
    output: String,
    copied_to: usize,
    is_truncated: bool,
    tags: usize,
    max_tags: usize,
    stray_brackets: usize,
    open_elements: Vec<TagName>,
    /// Formatting elements that have no end yet, whether they are open or not.
    active_formatting: Vec<TagName>,
    reopened: usize,
    /// Starts that were left out, whose ends are left out too.
    removed_starts: Vec<TagName>,
    /// The element that is left out with all that it holds.
    hidden: Option<HiddenElement>,
}

impl Sanitizer<'_> {
    /// Looks at the next tag from the byte `at` on; answers the byte after it.
    fn next_tag(&mut self, at: usize) -> Option<usize> {
        let start = at + self.html.get(at..)?.find('<')?;
        if self.html.get(at..start).is_some_and(|text| !text.trim_ascii().is_empty()) {
            self.reopen_formatting(at);
        }
        let rest = self.html.get(start..)?;
        if rest.starts_with("<!--") {
            return Some(self.comment_or_declaration(start, start + comment_end(rest)));
        }
        if rest.starts_with("<!") || rest.starts_with("<?") {
            return Some(self.comment_or_declaration(start, start + rest.find('>')? + 1));
        }
        if !starts_tag(rest.as_bytes()) {
            return Some(self.stray_bracket(start));
        }
        let Some(tag) = parse_tag(self.html, start) else {
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
    fn comment_or_declaration(&mut self, start: usize, end: usize) -> usize {
        self.tags += 1;
        if self.tags > self.max_tags {
            self.replace(start, end, "");
        }
        end
    }

    /// A `<` that begins no tag. The parser keeps a record of each one that is not written as it should be.
    fn stray_bracket(&mut self, start: usize) -> usize {
        self.stray_brackets += 1;
        if self.stray_brackets > MAX_STRAY_BRACKETS {
            self.replace(start, start + 1, "&lt;");
        }
        start + 1
    }

    /// Takes a start tag in, or leaves it out; answers the byte to go on with.
    fn start(&mut self, tag: &Tag, start: usize) -> usize {
        let name = tag.name;
        let is_foreign = self.is_foreign();
        if name.is(RAW) && !is_foreign {
            return raw_text_end(self.html, tag);
        }
        let has_content = !(name.is(VOID | DOCUMENT) || (is_foreign && tag.is_self_closing));
        self.close_implied(name);
        if self.is_hidden_at(start) {
            self.push_hidden(name, has_content);
            return tag.end;
        }
        let exceeds_limits = self.exceeds_limits(name, has_content);
        if has_content
            && (exceeds_limits || tag.excess_attributes.is_some())
            && hides_content(self.html, start, tag)
        {
            self.start_hidden(name, start);
            return tag.end;
        }
        if exceeds_limits {
            // What parts words goes on to part them.
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
            if has_content {
                self.removed_starts.push(name);
            }
            return tag.end;
        }
        if let Some(copied_to) = tag.excess_attributes {
            self.replace(copied_to, tag.end.saturating_sub(1), " ");
        }
        if !name.is(BLOCK) {
            self.reopen_formatting(start);
        }
        if has_content {
            self.open_elements.push(name);
        }
        if name.is(FORMATTING) {
            self.active_formatting.push(name);
        }
        tag.end
    }

    fn exceeds_limits(&self, name: TagName, has_content: bool) -> bool {
        let active_formatting =
            self.active_formatting.len() >= MAX_FORMATTING || self.reopened > MAX_REOPENED;
        self.tags > self.max_tags
            || (has_content && self.open_elements.len() >= MAX_DEPTH)
            || (name.is(FORMATTING) && active_formatting)
    }

    /// Closes what gives way to an element.
    fn close_implied(&mut self, name: TagName) {
        let Some((closed, barriers)) = name.implied_end() else {
            return;
        };
        let nearest = self.open_elements.iter().rposition(|other| other.is(closed | barriers));
        if let Some(at) = nearest
            && self.open_elements.get(at).is_some_and(|other| other.is(closed))
        {
            self.open_elements.truncate(at);
        }
    }

    fn end(&mut self, tag: &Tag, start: usize) {
        let name = tag.name;
        if self.end_hidden(tag, start) {
            return;
        }
        if name.is(FORMATTING)
            && let Some(at) = self.active_formatting.iter().rposition(|open_elements| *open_elements == name)
        {
            self.active_formatting.remove(at);
        }
        let recent = self.removed_starts.len().saturating_sub(MAX_UNMATCHED);
        let left_out = self.removed_starts.iter().skip(recent).rposition(|left_out| *left_out == name);
        if let Some(at) = left_out {
            self.removed_starts.remove(recent + at);
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
            return;
        }
        if self.tags > self.max_tags && !name.is(RAW) {
            self.replace(start, tag.end, if name.is(FORMATTING) { "" } else { " " });
        }
        let found = self.open_elements.iter().rposition(|open_elements| *open_elements == name);
        let Some(at) = found.filter(|at| self.reaches(name, *at)) else {
            return;
        };
        if name.is(FORMATTING) {
            self.open_elements.remove(at);
        } else {
            self.open_elements.truncate(at);
        }
    }

    /// Whether the end of an element reaches the open one at `at`.
    fn reaches(&self, name: TagName, at: usize) -> bool {
        let barriers = match name {
            name if name.is(TABULAR) => TABLE,
            name if name.is(BLOCK | BARRIER | FORMATTING) => BARRIER,
            _ => BLOCK | BARRIER,
        };
        !self.open_elements.get(at + 1..).unwrap_or_default().iter().any(|other| other.is(barriers))
    }

    /// Opens the formatting elements again that a block's end has closed. `at` is where they would be.
    fn reopen_formatting(&mut self, at: usize) {
        if self.active_formatting.is_empty() || self.hidden.is_some() {
            return;
        }
        let open_elements = self.open_elements.iter().filter(|name| name.is(FORMATTING)).count();
        let lost = self.active_formatting.len().saturating_sub(open_elements);
        self.reopened += lost;
        if self.reopened <= MAX_REOPENED {
            let again = self.active_formatting.iter().rev().take(lost).copied();
            return self.open_elements.extend(again);
        }
        // Formatting is over, in all of the rest.
        let ends: String =
            self.active_formatting.drain(..).map(|name| format!("</{}>", name.as_str())).collect();
        self.open_elements.retain(|name| !name.is(FORMATTING));
        self.replace(at, at, &ends);
    }

    fn is_foreign(&self) -> bool {
        let nearest = self.open_elements.iter().rev().find(|name| name.is(FOREIGN | INTEGRATION));
        nearest.is_some_and(|name| name.is(FOREIGN))
    }

    /// Puts `instead` in the place of a range.
    fn replace(&mut self, start: usize, end: usize, instead: &str) {
        self.is_truncated = true;
        if self.hidden.is_some() {
            return;
        }
        self.copy_until(start);
        self.output.push_str(instead);
        self.copied_to = end;
    }

    fn copy_until(&mut self, end: usize) {
        self.output.push_str(self.html.get(self.copied_to..end).unwrap_or_default());
        self.copied_to = end;
    }
}

#[cfg(test)]
mod tests;
