//! Markdown syntax of single lines.

/// The fence of a code block: its character and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

/// The fence that a trimmed line opens.
pub(super) fn fence(line: &str) -> Option<Fence> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Fence { mark, length })
}

impl Fence {
    /// Whether a trimmed line closes this fence.
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// The level and the raw title of an ATX heading.
pub(super) fn atx(line: &str) -> Option<(u8, &str)> {
    let words = line.trim_start_matches('#');
    let level = u8::try_from(line.len() - words.len()).ok().filter(|level| matches!(level, 1..=6))?;
    if !words.is_empty() && !words.starts_with([' ', '\t']) {
        return None;
    }
    let words = words.trim();
    let open = words.trim_end_matches('#');
    // A closing sequence of `#` counts only after white space.
    let closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if closed { open.trim_end() } else { words }))
}

/// The level of a heading that a trimmed line underlines.
pub(super) fn setext(line: &str) -> Option<u8> {
    match line.as_bytes().first()? {
        b'=' => line.bytes().all(|byte| byte == b'=').then_some(1),
        b'-' => line.bytes().all(|byte| byte == b'-').then_some(2),
        _ => None,
    }
}

/// Whether a trimmed line is a thematic break: three or more of one mark, optionally with spaces between them.
pub(super) fn is_thematic_break(line: &str) -> bool {
    let Some(mark) = line.bytes().next().filter(|mark| matches!(mark, b'*' | b'-' | b'_')) else {
        return false;
    };
    let mut count = 0;
    line.bytes().all(|byte| {
        count += usize::from(byte == mark);
        byte == mark || matches!(byte, b' ' | b'\t')
    }) && count >= 3
}

/// The marker of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListMarker {
    /// The columns from the start of the marker to the text of the item.
    pub(super) width: usize,
    /// Whether it may end a paragraph without a blank line: it has text and, if it is a number, it is 1.
    pub(super) interrupts: bool,
}

/// The list marker at the start of a trimmed line.
pub(super) fn list_marker(line: &str) -> Option<ListMarker> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match digits {
        0 => usize::from(line.starts_with(['-', '+', '*'])),
        1..=9 => digits + usize::from(line.get(digits..)?.starts_with(['.', ')'])),
        _ => 0,
    };
    let words = line.get(marker..).filter(|_| marker > digits)?;
    if !words.is_empty() && !words.starts_with([' ', '\t']) {
        return None;
    }
    let text = words.trim_start();
    let gap = words.len() - text.len();
    let first = digits == 0 || line.get(..digits) == Some("1");
    // More than four columns after the marker count as one, followed by indented code.
    let width = marker + if text.is_empty() || gap > 4 { 1 } else { gap };
    Some(ListMarker { width, interrupts: first && !text.is_empty() })
}

/// The fence that follows a list marker in the same line.
pub(super) fn fence_after_marker(line: &str) -> Option<Fence> {
    let marker = list_marker(line)?;
    fence(line.get(marker.width..)?.trim_start())
}

/// Whether a trimmed line is the delimiter row of a table: dashes and at least one `|`.
pub(super) fn is_delimiter_row(line: &str) -> bool {
    let dashes = line.contains('-') && line.contains('|');
    dashes && line.bytes().all(|byte| matches!(byte, b'-' | b'|' | b':' | b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atx_and_setext_lines_are_recognised() {
        let check = |line, expected| assert_eq!(atx(line), expected, "{line}");
        check("# One", Some((1, "One")));
        check("###### Six ##", Some((6, "Six")));
        check("####### Seven", None);
        check("#hashtag", None);
        check("#", Some((1, "")));
        check("## ##", Some((2, "")));
        check("# C#", Some((1, "C#")));
        assert_eq!((setext("==="), setext("-"), setext("- -"), setext("=-")), (Some(1), Some(2), None, None));
    }

    #[test]
    fn fences_and_thematic_breaks_are_recognised() {
        assert!(
            fence("```rust").is_some_and(|fence| fence.is_closed_by("````") && !fence.is_closed_by("``"))
        );
        assert!(fence("~~~ a`b").is_some());
        assert!(fence("``` a`b").is_none());
        assert!(
            is_thematic_break("* * *")
                && is_thematic_break("---")
                && !is_thematic_break("--")
                && !is_thematic_break("--a")
        );
    }

    #[test]
    fn list_markers_have_width_and_interrupt() {
        let check = |line, expected: Option<(usize, bool)>| {
            assert_eq!(list_marker(line).map(|marker| (marker.width, marker.interrupts)), expected, "{line}");
        };
        check("- a", Some((2, true)));
        check("10) a", Some((4, false)));
        check("1.  a", Some((4, true)));
        check("-", Some((2, false)));
        check("-a", None);
        check("1990", None);
        check("1234567890. a", None);
        check("**bold**", None);
    }
}
