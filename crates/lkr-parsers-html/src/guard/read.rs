//! Where tags, comments and raw text end.

use super::{MAX_ATTRIBUTES, tag::Name};
use crate::{
    hidden::{Place, look},
    sheet::Sheet,
};

/// A tag in the text: `</name …>` or `<name …>`.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: Name,
    pub(super) is_end: bool,
    pub(super) closes_itself: bool,
    /// The byte after it.
    pub(super) end: usize,
    /// Where the attributes that are too many begin.
    pub(super) too_many: Option<usize>,
}

/// The length of the comment that a text begins with.
pub(super) fn comment(text: &str) -> usize {
    if text.starts_with("<!-->") {
        return 5;
    }
    if text.starts_with("<!--->") {
        return 6;
    }
    let mut at = 4;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("--")) {
        let after = at + found + 2;
        match text.as_bytes().get(after..) {
            Some([b'>', ..]) => return after + 1,
            Some([b'!', b'>', ..]) => return after + 2,
            _ => at = after - 1,
        }
    }
    text.len()
}

/// Whether a start tag in the text says that what it holds is not shown.
pub(super) fn hides(html: &str, start: usize, tag: &Tag) -> bool {
    let found = attributes_of(html.get(start..tag.end).unwrap_or_default());
    let value = |name: &str| {
        let attribute = found.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        attribute.map(|(_, value)| *value)
    };
    let sheet = Sheet::default().lenient();
    look(tag.name.as_str(), value, &sheet, &Place::default()).is_none_or(|place| !place.shows())
}

/// The names and values of a start tag's attributes.
pub(super) fn attributes_of(tag: &str) -> Vec<(&str, &str)> {
    let bytes = tag.as_bytes();
    let mut found = Vec::new();
    let mut at =
        bytes.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'/').unwrap_or(tag.len());
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>') {
            at += 1;
            continue;
        }
        let Some(end) = attribute(bytes, at) else {
            break;
        };
        let whole = tag.get(at..end).unwrap_or_default();
        let (name, value) = whole.split_once('=').unwrap_or((whole, ""));
        found.push((name.trim_ascii(), value.trim_ascii().trim_matches(['"', '\''])));
        at = end;
    }
    found
}

/// The byte after the text that a raw element holds: its end tag stays where it is.
pub(super) fn raw_end(html: &str, tag: &Tag) -> usize {
    let name = tag.name;
    if name.as_str() == "plaintext" {
        return html.len();
    }
    let mut at = tag.end;
    while let Some(found) = html.get(at..).and_then(|rest| rest.find("</")) {
        let start = at + found + 2;
        let rest = html.get(start..).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if rest.get(..length).is_some_and(|other| other.eq_ignore_ascii_case(name.as_str())) {
            return start - 2;
        }
        at = start;
    }
    html.len()
}

pub(super) fn begins_tag(text: &[u8]) -> bool {
    match text {
        [b'<', b'/', first, ..] | [b'<', first, ..] => first.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Reads the tag that begins at `start`; none where it has no end.
pub(super) fn read_tag(html: &str, start: usize) -> Option<Tag> {
    let bytes = html.as_bytes();
    let is_end = bytes.get(start + 1) == Some(&b'/');
    let from = start + 1 + usize::from(is_end);
    let is_over = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    let length = bytes.get(from..)?.iter().position(is_over)?;
    let name = Name::new(html.get(from..from + length)?);
    let (end, too_many) = attributes(bytes, from + length)?;
    let closes_itself = end.checked_sub(2).and_then(|at| bytes.get(at)) == Some(&b'/');
    Some(Tag { name, is_end, closes_itself, end, too_many })
}

/// The byte after the tag whose attributes begin at `at`, and where those begin that are too many.
fn attributes(bytes: &[u8], mut at: usize) -> Option<(usize, Option<usize>)> {
    let (mut count, mut too_many) = (0_usize, None);
    loop {
        match bytes.get(at)? {
            b'>' => return Some((at + 1, too_many)),
            byte if byte.is_ascii_whitespace() || *byte == b'/' => at += 1,
            _ => {
                count += 1;
                if count > MAX_ATTRIBUTES && too_many.is_none() {
                    too_many = Some(at);
                }
                at = attribute(bytes, at)?;
            }
        }
    }
}

/// The byte after the attribute that begins at `at`.
fn attribute(bytes: &[u8], at: usize) -> Option<usize> {
    // A name may begin with `=`.
    let mut end = at + 1;
    while !matches!(bytes.get(end)?, b'=' | b'>' | b'/') && !bytes.get(end)?.is_ascii_whitespace() {
        end += 1;
    }
    let after_name = end + blanks(bytes, end);
    if bytes.get(after_name) != Some(&b'=') {
        return Some(end);
    }
    let value = after_name + 1 + blanks(bytes, after_name + 1);
    match bytes.get(value)? {
        quote @ (b'"' | b'\'') => {
            let length = bytes.get(value + 1..)?.iter().position(|byte| byte == quote)?;
            Some(value + length + 2)
        }
        _ => {
            let is_over = |byte: &u8| *byte == b'>' || byte.is_ascii_whitespace();
            Some(value + bytes.get(value..)?.iter().position(is_over)?)
        }
    }
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
