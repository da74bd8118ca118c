//! HTML blocks, as far as they can hide what looks like a heading.

/// Where an HTML block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// With the line that holds this.
    Mark(&'static str),
    /// Before the next blank line.
    Blank,
}

/// Blocks whose content is not Markdown up to their end, blank lines included.
const RAW: [(&str, &str); 5] = [
    ("<!--", "-->"),
    ("<pre", "</pre>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
];

/// Elements that make a block of the lines up to the next blank one.
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
    let whole = |prefix: &str| {
        let next = line.get(prefix.len()..).and_then(|tail| tail.chars().next());
        prefix == "<!--" || next.is_none_or(|c| c.is_whitespace() || c == '>')
    };
    if let Some((_, end)) = RAW.iter().find(|(start, _)| starts(start) && whole(start)) {
        return Some(HtmlEnd::Mark(end));
    }
    let name = line.trim_start_matches(['<', '/']);
    let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let known = ELEMENTS.iter().any(|element| element.eq_ignore_ascii_case(name));
    known.then_some(HtmlEnd::Blank)
}

impl HtmlEnd {
    /// Whether `line` is the block's last.
    pub(super) fn is_in(self, line: &str) -> bool {
        match self {
            Self::Mark(mark) => holds(line, mark),
            Self::Blank => false,
        }
    }
}

/// Whether `line` holds `mark`, however its letters are written.
fn holds(line: &str, mark: &str) -> bool {
    line.as_bytes().windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks() {
        let check = |line, expected| assert_eq!(html_block(line), expected, "{line}");
        check("<!-- x", Some(HtmlEnd::Mark("-->")));
        check("<PRE>", Some(HtmlEnd::Mark("</pre>")));
        check("<preset>", None);
        check("</div>", Some(HtmlEnd::Blank));
        check("<details open>", Some(HtmlEnd::Blank));
        check("<b>bold</b> text", None);
        check("< p", None);
        check("a <p>", None);
        assert!(HtmlEnd::Mark("</pre>").is_in("x</PRE> y"));
    }
}
