use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Longer raw headings are not parsed, to bound the cost of inline markup.
const MAX_RAW_BYTES: usize = 4_000;

/// The longest title in Unicode code points.
const MAX_TITLE_CHARS: usize = 300;

/// The title of a heading without markup; `None` if it is too long.
pub(super) fn plain(raw: &str) -> Option<String> {
    if raw.len() > MAX_RAW_BYTES {
        return None;
    }
    // Parsed as a heading, so that `1.` is not a list marker and attributes are recognised.
    let source = format!("# {}", raw.replace(['\n', '\r'], " "));
    let options = Options::ENABLE_HEADING_ATTRIBUTES | Options::ENABLE_STRIKETHROUGH;
    let (mut words, mut images, mut alternatives) = (String::new(), 0, String::new());
    for event in Parser::new_ext(&source, options) {
        match event {
            Event::Start(Tag::Image { .. }) => images += 1,
            Event::End(TagEnd::Image) => images -= 1,
            Event::Text(text) | Event::Code(text) if images == 0 => words.push_str(&text),
            Event::Text(text) | Event::Code(text) => alternatives.push_str(&text),
            _ => {}
        }
    }
    let title = collapse(&words);
    let title = if title.is_empty() { collapse(&alternatives) } else { title };
    (title.chars().count() <= MAX_TITLE_CHARS).then_some(title)
}

fn collapse(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_markup_is_removed_from_titles() {
        let check = |raw: &str, expected: &str| assert_eq!(plain(raw).as_deref(), Some(expected));
        check("Plain words", "Plain words");
        check("**Bold** and `code` [link](https://example.com/a_b)", "Bold and code link");
        check("1. First", "1. First");
        check("- not a list", "- not a list");
        check("Setup {#set-up}", "Setup");
        check("<a name=\"x\"></a>Anchor &amp; more", "Anchor & more");
        check("![Logo](logo.png)", "Logo");
        check("![Logo](logo.png) lkr", "lkr");
        check("snake_case_name", "snake_case_name");
        check("two\nlines", "two lines");
        check("", "");
        assert_eq!(plain(&"word ".repeat(61)), None);
        assert_eq!(plain(&"[".repeat(5_000)), None);
    }
}
