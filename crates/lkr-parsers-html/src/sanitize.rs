//! Removes tags that would make parsing slow, before a page is parsed.
//!
//! The time that HTML parsers need grows with the square of the nesting depth and of the number of attributes of a tag.
//! They also reopen formatting elements again and again where these overlap with blocks. This scan follows the parsing
//! rules roughly and removes tags beyond fixed limits. It removes text only if a removed tag hides it.

mod hidden;
mod name;
mod styles;
mod tag;

use std::borrow::Cow;

use hidden::HiddenElement;
use name::{BARRIER, BLOCK, DOCUMENT, FOREIGN, FORMATTING, INTEGRATION, RAW, TABLE, TABULAR, TagName, VOID};
pub(crate) use styles::find_styles;
use tag::{Tag, comment_end, hides_content, parse_tag, raw_text_end, starts_tag, written_name};

/// Most levels of nested elements. Some hundred real pages had 38 at most.
const MAX_DEPTH: usize = 512;

/// Most attributes of a tag. The same pages had 70 at most.
const MAX_ATTRIBUTES: usize = 256;

/// Most tags of a page, unless a parser sets a lower limit.
pub(crate) const MAX_TAGS: usize = 600_000;

/// Most `<` of a page that do not begin a tag.
const MAX_STRAY_BRACKETS: usize = 20_000;

/// Most formatting elements that are open at once.
const MAX_FORMATTING: usize = 48;

/// Formatting elements are reopened at most this often in a page.
const MAX_REOPENED: usize = 100_000;

/// The end tag of a removed element is searched among this many removed start tags.
const MAX_UNMATCHED: usize = 16;

/// A page that can be parsed in reasonable time.
#[derive(Debug)]
pub(crate) struct Sanitized<'a> {
    pub(crate) html: Cow<'a, str>,
    /// Whether tags or attributes were removed.
    pub(crate) is_truncated: bool,
    /// Whether the page ends within a tag, which was removed.
    pub(crate) ends_in_tag: bool,
}

impl Sanitized<'_> {
    /// What a reader of the page should know.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let removed =
            "the page has too many tags or nested elements; some tags were removed, but no visible text";
        let cut_off = "the page ends within a tag; its end may be missing";
        let removed = self.is_truncated.then_some(removed);
        removed.into_iter().chain(self.ends_in_tag.then_some(cut_off))
    }
}

/// Removes tags that would make parsing slow, and all tags after the first `max_tags`.
pub(crate) fn sanitize(html: &str, max_tags: usize) -> Sanitized<'_> {
    if html.contains(is_dropped_control) {
        let clean: String = html.chars().filter(|c| !is_dropped_control(*c)).collect();
        let scanned = scan(&clean, max_tags);
        let html = Cow::Owned(scanned.html.into_owned());
        return Sanitized { html, is_truncated: scanned.is_truncated, ends_in_tag: scanned.ends_in_tag };
    }
    scan(html, max_tags)
}

/// Whether a control character has no meaning in HTML. The parser drops it too, but records an error for each.
fn is_dropped_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{85}')
}

fn scan(html: &str, max_tags: usize) -> Sanitized<'_> {
    let is_xml = html.trim_ascii_start().starts_with("<?xml");
    let mut scan = Sanitizer { html, max_tags, is_xml, ..Sanitizer::default() };
    let mut at = 0;
    while let Some(next) = scan.next_tag(at) {
        at = next;
    }
    let (is_truncated, ends_in_tag) = (scan.is_truncated, scan.ends_in_tag);
    if !is_truncated && !ends_in_tag && !scan.is_expanded {
        return Sanitized { html: Cow::Borrowed(html), is_truncated, ends_in_tag };
    }
    scan.end_hidden_at(html.len());
    scan.copy_until(html.len());
    Sanitized { html: Cow::Owned(scan.output), is_truncated, ends_in_tag }
}

#[derive(Debug, Default)]
struct Sanitizer<'a> {
    html: &'a str,
    /// The sanitized page up to the byte `copied_to`, if it differs from the input.
    output: String,
    copied_to: usize,
    is_truncated: bool,
    ends_in_tag: bool,
    /// Whether the page is XML, in which `<title/>` is an empty element. In HTML it is a start tag.
    is_xml: bool,
    /// Whether empty elements of XML were written as those of HTML.
    is_expanded: bool,
    tags: usize,
    max_tags: usize,
    stray_brackets: usize,
    open_elements: Vec<TagName>,
    /// Formatting elements without an end tag so far, whether they are open or not.
    active_formatting: Vec<TagName>,
    reopened: usize,
    /// Removed start tags, whose end tags are removed too.
    removed_starts: Vec<TagName>,
    /// The element that is being removed with its content.
    hidden: Option<HiddenElement>,
}

impl Sanitizer<'_> {
    /// Handles the next tag from the byte `at` on; returns the offset after it.
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
            // Browsers show neither a tag without an end nor the text after it.
            self.ends_in_tag = true;
            self.put(start, self.html.len(), "");
            return None;
        };
        self.tags += 1;
        if tag.is_end {
            self.end(&tag, start);
            return Some(tag.end);
        }
        Some(self.start(&tag, start))
    }

    /// Handles a comment or a declaration.
    fn comment_or_declaration(&mut self, start: usize, end: usize) -> usize {
        self.tags += 1;
        if self.tags > self.max_tags {
            self.replace(start, end, "");
        }
        end
    }

    /// Handles a `<` that does not begin a tag. The parser records an error for each one that is not escaped.
    fn stray_bracket(&mut self, start: usize) -> usize {
        self.stray_brackets += 1;
        if self.stray_brackets > MAX_STRAY_BRACKETS {
            self.replace(start, start + 1, "&lt;");
        }
        start + 1
    }

    /// Keeps or removes a start tag; returns the offset at which the scan continues.
    fn start(&mut self, tag: &Tag, start: usize) -> usize {
        let name = tag.name;
        let is_foreign = self.is_foreign();
        if self.is_empty_in_xml(tag, start, is_foreign) {
            self.close_implied(name);
            if !self.is_hidden_at(start) && !name.is(BLOCK) {
                self.reopen_formatting(start);
            }
            self.is_expanded = true;
            let ended = format!("></{}>", written_name(self.html, start, tag));
            self.put(tag.end.saturating_sub(2), tag.end, &ended);
            return tag.end;
        }
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
            self.remove_tag(tag, start);
            if has_content {
                self.removed_starts.push(name);
            }
            return tag.end;
        }
        if let Some(excess) = tag.excess_attributes {
            self.replace(excess, tag.end.saturating_sub(1), " ");
        }
        self.open(name, start, has_content);
        tag.end
    }

    /// Whether a tag is an empty element of XML that HTML would read as a start tag.
    fn is_empty_in_xml(&self, tag: &Tag, start: usize, is_foreign: bool) -> bool {
        let is_empty = self.is_xml && tag.is_self_closing && !is_foreign;
        // XML has no value without quotation marks, which may end with a slash.
        let before = self.html.get(start..tag.end.saturating_sub(2)).unwrap_or_default();
        let last = before.rsplit(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
        is_empty
            && (!last.contains('=') || last.ends_with(['"', '\'']))
            && !tag.name.is(VOID | DOCUMENT | FOREIGN)
            && tag.excess_attributes.is_none()
            && self.tags <= self.max_tags
    }

    fn open(&mut self, name: TagName, start: usize, has_content: bool) {
        if !name.is(BLOCK) {
            self.reopen_formatting(start);
        }
        if has_content {
            self.open_elements.push(name);
        }
        if name.is(FORMATTING) {
            self.active_formatting.push(name);
        }
    }

    /// Removes a tag. A space keeps words apart that it separated.
    fn remove_tag(&mut self, tag: &Tag, start: usize) {
        self.replace(start, tag.end, if tag.name.is(FORMATTING) { "" } else { " " });
    }

    fn exceeds_limits(&self, name: TagName, has_content: bool) -> bool {
        let is_formatting_full =
            self.active_formatting.len() >= MAX_FORMATTING || self.reopened > MAX_REOPENED;
        self.tags > self.max_tags
            || (has_content && self.open_elements.len() >= MAX_DEPTH)
            || (name.is(FORMATTING) && is_formatting_full)
    }

    /// Closes the elements whose end tag this start tag implies.
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
            && let Some(at) = self.active_formatting.iter().rposition(|open| *open == name)
        {
            self.active_formatting.remove(at);
        }
        let recent = self.removed_starts.len().saturating_sub(MAX_UNMATCHED);
        let removed = self.removed_starts.iter().skip(recent).rposition(|removed| *removed == name);
        if let Some(at) = removed {
            self.removed_starts.remove(recent + at);
            self.remove_tag(tag, start);
            return;
        }
        if self.tags > self.max_tags && !name.is(RAW) {
            self.remove_tag(tag, start);
        }
        let found = self.open_elements.iter().rposition(|open| *open == name);
        let Some(at) = found.filter(|at| self.reaches(name, *at)) else {
            return;
        };
        if name.is(FORMATTING) {
            self.open_elements.remove(at);
        } else {
            self.open_elements.truncate(at);
        }
    }

    /// Whether an end tag can close the open element at `at`.
    fn reaches(&self, name: TagName, at: usize) -> bool {
        let barriers = match name {
            name if name.is(TABULAR) => TABLE,
            name if name.is(BLOCK | BARRIER | FORMATTING) => BARRIER,
            _ => BLOCK | BARRIER,
        };
        !self.open_elements.get(at + 1..).unwrap_or_default().iter().any(|other| other.is(barriers))
    }

    /// Reopens the formatting elements that the end of a block closed. `at` is their position.
    fn reopen_formatting(&mut self, at: usize) {
        if self.active_formatting.is_empty() || self.hidden.is_some() {
            return;
        }
        let open = self.open_elements.iter().filter(|name| name.is(FORMATTING)).count();
        let missing = self.active_formatting.len().saturating_sub(open);
        self.reopened += missing;
        if self.reopened <= MAX_REOPENED {
            let reopened = self.active_formatting.iter().rev().take(missing).copied();
            return self.open_elements.extend(reopened);
        }
        // The limit is reached: all formatting ends here.
        let ends: String =
            self.active_formatting.drain(..).map(|name| format!("</{}>", name.as_str())).collect();
        self.open_elements.retain(|name| !name.is(FORMATTING));
        self.replace(at, at, &ends);
    }

    fn is_foreign(&self) -> bool {
        let nearest = self.open_elements.iter().rev().find(|name| name.is(FOREIGN | INTEGRATION));
        nearest.is_some_and(|name| name.is(FOREIGN))
    }

    /// Replaces a range beyond the limits.
    fn replace(&mut self, start: usize, end: usize, replacement: &str) {
        self.is_truncated = true;
        self.put(start, end, replacement);
    }

    /// Writes a replacement of a range.
    fn put(&mut self, start: usize, end: usize, replacement: &str) {
        if self.hidden.is_some() {
            return;
        }
        self.copy_until(start);
        self.output.push_str(replacement);
        self.copied_to = end;
    }

    fn copy_until(&mut self, end: usize) {
        self.output.push_str(self.html.get(self.copied_to..end).unwrap_or_default());
        self.copied_to = end;
    }
}

#[cfg(test)]
mod tests;
