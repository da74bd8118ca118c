//! HTML blocks, as far as their content can look like a heading.

/// The end of an HTML block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// The line that contains this text.
    Mark(&'static str),
    /// The line before the next blank one.
    Blank,
}

/// Starts and ends of blocks whose content is not Markdown, including blank lines.
const RAW: [(&str, &str); 5] = [
    ("<!--", "-->"),
    ("<pre", "</pre>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
];

/// Elements whose block ends before the next blank line.
const ELEMENTS: [&str; 40] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

/// The end of the HTML block that a trimmed line begins.
pub(super) fn html_block(line: &str) -> Option<HtmlEnd> {
    if !line.starts_with('<') {
        return None;
    }
    let starts =
        |prefix: &str| line.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    let is_complete_name = |prefix: &str| {
        let next = line.get(prefix.len()..).and_then(|tail| tail.chars().next());
        prefix == "<!--" || next.is_none_or(|c| c.is_whitespace() || c == '>')
    };
    if let Some((_, end)) = RAW.iter().find(|(start, _)| starts(start) && is_complete_name(start)) {
        return Some(HtmlEnd::Mark(end));
    }
    let name = line.trim_start_matches(['<', '/']);
    let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_block = ELEMENTS.iter().any(|element| element.eq_ignore_ascii_case(name));
    is_block.then_some(HtmlEnd::Blank)
}

impl HtmlEnd {
    /// Whether `line` is the last one of the block.
    pub(super) fn is_last_line(self, line: &str) -> bool {
        match self {
            Self::Mark(mark) => contains_ignore_case(line, mark),
            Self::Blank => false,
        }
    }
}

/// Whether `line` contains `mark`, ignoring case.
fn contains_ignore_case(line: &str, mark: &str) -> bool {
    line.as_bytes().windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_blocks_end_at_mark_or_blank_line() {
        let check = |line, expected| assert_eq!(html_block(line), expected, "{line}");
        check("<!-- x", Some(HtmlEnd::Mark("-->")));
        check("<PRE>", Some(HtmlEnd::Mark("</pre>")));
        check("<preset>", None);
        check("</div>", Some(HtmlEnd::Blank));
        check("<details open>", Some(HtmlEnd::Blank));
        check("<b>bold</b> text", None);
        check("< p", None);
        check("a <p>", None);
        assert!(HtmlEnd::Mark("</pre>").is_last_line("x</PRE> y"));
    }
}
