//! Finds the ends of tags, comments and raw text.

use super::{MAX_ATTRIBUTES, name::TagName};
use crate::{
    style_sheet::StyleSheet,
    visibility::{TextVisibility, visibility_in},
};

/// A tag in the text: `</name …>` or `<name …>`.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: TagName,
    pub(super) is_end: bool,
    pub(super) is_self_closing: bool,
    /// The offset of the byte after the tag.
    pub(super) end: usize,
    /// The offset of the first attribute beyond the limit.
    pub(super) excess_attributes: Option<usize>,
}

/// The length of the comment at the start of a text.
pub(super) fn comment_end(text: &str) -> usize {
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

/// Whether the attributes of a start tag hide its content.
pub(super) fn hides_content(html: &str, start: usize, tag: &Tag) -> bool {
    let found = attributes(html.get(start..tag.end).unwrap_or_default());
    let value = |name: &str| {
        let attribute = found.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        attribute.map(|(_, value)| *value)
    };
    let style_sheet = StyleSheet::default().without_rules();
    visibility_in(tag.name.as_str(), value, &style_sheet, &TextVisibility::default())
        .is_none_or(|visibility| !visibility.is_visible())
}

/// The names and values of a start tag's attributes.
pub(super) fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let bytes = tag.as_bytes();
    let mut found = Vec::new();
    let mut at =
        bytes.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'/').unwrap_or(tag.len());
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>') {
            at += 1;
            continue;
        }
        let Some(end) = attribute_end(bytes, at) else {
            break;
        };
        let attribute = tag.get(at..end).unwrap_or_default();
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        found.push((name.trim_ascii(), value.trim_ascii().trim_matches(['"', '\''])));
        at = end;
    }
    found
}

/// The offset of the end tag of a raw element, or the end of the page.
pub(super) fn raw_text_end(html: &str, tag: &Tag) -> usize {
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

pub(super) fn starts_tag(text: &[u8]) -> bool {
    match text {
        [b'<', b'/', first, ..] | [b'<', first, ..] => first.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Parses the tag that begins at `start`; `None` if it has no end.
pub(super) fn parse_tag(html: &str, start: usize) -> Option<Tag> {
    let bytes = html.as_bytes();
    let is_end = bytes.get(start + 1) == Some(&b'/');
    let name_start = start + 1 + usize::from(is_end);
    let is_over = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    let length = bytes.get(name_start..)?.iter().position(is_over)?;
    let name = TagName::new(html.get(name_start..name_start + length)?);
    let (end, excess_attributes) = attributes_end(bytes, name_start + length)?;
    let is_self_closing = end.checked_sub(2).and_then(|at| bytes.get(at)) == Some(&b'/');
    Some(Tag { name, is_end, is_self_closing, end, excess_attributes })
}

/// The whole name of the start tag that begins at `start`. That of the tag itself is cut.
pub(super) fn written_name<'a>(html: &'a str, start: usize, tag: &Tag) -> &'a str {
    let is_over = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>');
    html.get(start + 1..tag.end).and_then(|tag| tag.split(is_over).next()).unwrap_or_default()
}

/// The offset after a tag whose attributes begin at `at`, and the offset of the first attribute beyond the limit.
fn attributes_end(bytes: &[u8], mut at: usize) -> Option<(usize, Option<usize>)> {
    let (mut count, mut excess_attributes) = (0_usize, None);
    loop {
        match bytes.get(at)? {
            b'>' => return Some((at + 1, excess_attributes)),
            byte if byte.is_ascii_whitespace() || *byte == b'/' => at += 1,
            _ => {
                count += 1;
                if count > MAX_ATTRIBUTES && excess_attributes.is_none() {
                    excess_attributes = Some(at);
                }
                at = attribute_end(bytes, at)?;
            }
        }
    }
}

/// The offset after the attribute that begins at `at`.
fn attribute_end(bytes: &[u8], at: usize) -> Option<usize> {
    // A name may begin with `=`.
    let mut end = at + 1;
    while !matches!(bytes.get(end)?, b'=' | b'>' | b'/') && !bytes.get(end)?.is_ascii_whitespace() {
        end += 1;
    }
    let after_name = end + whitespace_len(bytes, end);
    if bytes.get(after_name) != Some(&b'=') {
        return Some(end);
    }
    let value = after_name + 1 + whitespace_len(bytes, after_name + 1);
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

fn whitespace_len(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
