use std::ops::Range;

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The line without its line ending.
    pub(crate) text: &'a str,
    /// Its byte range in the whole text.
    pub(crate) content: Range<usize>,
}

impl Line<'_> {
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The column of the first character that is not white space. A tab advances to the next multiple of four.
    pub(crate) fn indent(&self) -> usize {
        let mut columns = 0;
        for byte in self.text.bytes() {
            match byte {
                b' ' => columns += 1,
                b'\t' => columns += 4 - columns % 4,
                _ => break,
            }
        }
        columns
    }

    /// The line without the white space at its ends.
    pub(crate) fn trimmed(&self) -> &str {
        self.text.trim()
    }
}

/// The lines of `text`, which end with LF, CR LF or CR. A byte order mark at the start is not part of a line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    std::iter::from_fn(move || {
        let tail = text.get(at..).filter(|tail| !tail.is_empty())?;
        let length = tail.find(['\n', '\r']).unwrap_or(tail.len());
        let (line, end) = tail.split_at_checked(length)?;
        let content = at..at + length;
        at = content.end + if end.starts_with("\r\n") { 2 } else { usize::from(!end.is_empty()) };
        Some(Line { text: line, content })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<_> = lines(text).map(|line| line.text).collect();
            assert_eq!(found, expected);
        };
        check("", &[]);
        check("a\nb\r\nc\rd\r\n", &["a", "b", "c", "d"]);
        check("\n\r\r\n", &["", "", ""]);
        check("\u{feff}# a", &["# a"]);
    }

    #[test]
    fn tabs_advance_to_multiple_of_four() {
        let check = |text, expected| assert_eq!(lines(text).next().unwrap().indent(), expected);
        check("a", 0);
        check("   a", 3);
        check("\ta", 4);
        check("  \ta", 4);
    }
}
