//! Grounding: whether source texts support a sentence, judged by its words, numbers, names and links.

use std::collections::HashSet;

use crate::{detect, literal::contains_all_identifiers, overlap, query_terms};

/// The share of a sentence's words, in any form, that `sources` contain together, from 0 to 1; 0 if it has no words.
#[must_use]
pub fn support(sentence: &str, sources: &[&str]) -> f64 {
    let sources = sources.join("\n");
    overlap(&query_terms(sentence), &sources, detect(&sources)).of_query
}

/// Whether `sources` contain at least `share` of a sentence's words, and all of its numbers, codes and names of files
/// and program parts.
///
/// This compares words, not statements: a sentence that passes may still combine them wrongly. A sentence that fails
/// was made up.
#[must_use]
pub fn is_supported(sentence: &str, sources: &[&str], share: f64) -> bool {
    let source_numbers: HashSet<String> = sources.iter().flat_map(|source| numbers(source)).collect();
    numbers(sentence).is_subset(&source_numbers)
        && contains_all_identifiers(sentence, sources)
        && support(sentence, sources) >= share
}

/// The numbers of a text, without thousands separators.
fn numbers(text: &str) -> HashSet<String> {
    let runs = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
    let bare = runs.map(|run| run.trim_matches(['.', ',']).replace(',', ""));
    bare.filter(|number| !number.is_empty()).collect()
}

/// A text without images, tags, invisible characters, and links that `sources` do not contain literally. The label of a
/// Markdown link is kept.
#[must_use]
pub fn without_foreign_links(text: &str, sources: &[&str]) -> String {
    // A removal may join the parts of another link. Each pass shortens the text, so the loop ends.
    let mut text = remove_once(text, sources);
    loop {
        let shorter = remove_once(&text, sources);
        if shorter.len() >= text.len() {
            return text;
        }
        text = shorter;
    }
}

fn remove_once(text: &str, sources: &[&str]) -> String {
    let in_sources = |link: &str| !link.is_empty() && sources.iter().any(|source| source.contains(link));
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (piece, after) = if let Some((_, _, after)) = rest.strip_prefix('!').and_then(markdown_link) {
            (String::new(), after)
        } else if let Some((label, link, after)) = markdown_link(rest) {
            let text = if bare_link(link, None).is_some() && in_sources(link) {
                format!("{label} ({link})")
            } else {
                label.to_owned()
            };
            (without_foreign_links_in_label(&text, in_sources), after)
        } else if let Some(after) = tag(rest) {
            (String::new(), after)
        } else if let Some((link, after)) = bare_link(rest, kept.chars().next_back()) {
            (if in_sources(link) { link.to_owned() } else { String::new() }, after)
        } else {
            let text = if is_hidden(c) { String::new() } else { c.to_string() };
            (text, rest.get(c.len_utf8()..).unwrap_or_default())
        };
        kept.push_str(&piece);
        rest = after;
    }
    kept
}

/// A label without foreign links. A label contains no brackets, so it can contain bare links only.
fn without_foreign_links_in_label(label: &str, in_sources: impl Fn(&str) -> bool) -> String {
    let words = label.split_inclusive(char::is_whitespace);
    let is_foreign = |word: &str| {
        let bare = word.trim().trim_start_matches(['(', '<', '"', '\'']);
        bare_link(bare, None).is_some_and(|(link, _)| !in_sources(link))
    };
    words.filter(|word| !is_foreign(word)).flat_map(str::chars).filter(|&c| !is_hidden(c)).collect()
}

/// The Markdown link at the start of `text`: its label, its address, and the rest of the text.
fn markdown_link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (link, after) = rest.split_once(')')?;
    let link = link.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
    (!label.contains(['[', ']', '\n']) && !rest.starts_with('\n')).then_some((label, link, after))
}

/// The text after the HTML tag or comment at the start of `text`. An address in angle brackets is not a tag.
fn tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    if bare_link(inner, None).is_some()
        || !inner.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c))
    {
        return None;
    }
    inner.split_once('>').map(|(_, after)| after)
}

/// The address at the start of `text`, and the rest of the text. `before` is the character before it.
fn bare_link(text: &str, before: Option<char>) -> Option<(&str, &str)> {
    const PREFIXES: [&str; 7] = ["http://", "https://", "ftp://", "www.", "mailto:", "data:", "javascript:"];
    let matches =
        |prefix: &&str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let prefix = PREFIXES.iter().find(|prefix| matches(prefix))?;
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let end = text
        .find(|c: char| c.is_whitespace() || "<>\"'()[]{}|\\^`。，、」』）】".contains(c))
        .unwrap_or(text.len());
    let (link, _) = text.split_at_checked(end)?;
    let link = link.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    (link.len() > prefix.len()).then(|| (link, text.get(link.len()..).unwrap_or_default()))
}

/// Whether a character is invisible: terminal control, writing direction, zero width, or a Unicode tag.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn is_supported_requires_words_numbers_and_names_of_the_sources() {
        let ice = "The ice of Europa is about 20 kilometres thick; below it lies an ocean of 1,000,000 km³.";
        let is_supported = |sentence: &str, sources: &[&str]| is_supported(sentence, sources, 0.5);
        assert!(is_supported("Europa's ice is 20 kilometres thick.", &[ice]));
        assert!(is_supported("An ocean of 1000000 km³ lies below the ice.", &["nothing", ice]));
        assert!(!is_supported("Europa's ice is 30 kilometres thick.", &[ice]), "another number");
        assert!(!is_supported("Io has four hundred active volcanoes.", &[ice]), "other words");
        let code = "Call kit.read_all(path) of main.rs, or ask the Reader to read what is open.";
        assert!(is_supported("main.rs calls kit.read_all.", &[code]));
        assert!(!is_supported("Call kit.open_all(path) to read all.", &[code]), "a name combined from two");
        assert!(!is_supported("Call kit.main.rs to read.", &[code]));
        assert!(!is_supported("", &[ice]) && !is_supported("Ice is thick.", &[]));
        assert!(is_supported("東京は日本の首都です。", &["日本の首都は東京です。"]));
        assert!(!is_supported("大阪城は有名です。", &["日本の首都は東京です。"]));
    }

    #[test]
    fn without_foreign_links_removes_links_images_tags_and_invisible_characters() {
        let source = ["See https://docs.example/a?b=1 or www.docs.example."];
        let check =
            |text: &str, expected: &str| assert_eq!(without_foreign_links(text, &source), expected, "{text}");
        check("see https://docs.example/a?b=1, please", "see https://docs.example/a?b=1, please");
        check("see https://evil.example/?q=secret, please", "see , please");
        check("see HTTPS://EVIL.example", "see ");
        check("[the docs](https://docs.example/a?b=1)!", "the docs (https://docs.example/a?b=1)!");
        check("[click](https://evil.example/?q=1 \"t\") here", "click here");
        check("[https://evil.example](x) here", " here");
        check("a ![pixel](https://evil.example/p.png?d=1) b", "a  b");
        check("a <img src=https://evil.example/p> <b>c</b> <!-- d -->", "a  c ");
        check("<https://evil.example/x> 3 < 4 > 2", "<> 3 < 4 > 2");
        check("javascript:alert(1) data:text/html,x", "(1) ");
        check("a[i](j) [1][2] [x] ](", "ai [1][2] [x] ](");
        check("hid\u{200b}den\u{202e} \u{1b}[31m\u{e0041}", "hidden [31m");
        check("awww.ful", "awww.ful");
    }

    proptest! {
        #[test]
        fn without_foreign_links_leaves_no_foreign_address(text in "([a-c .<>()\\[\\]!]|https://|www\\.x|\u{200b}){0,24}") {
            let kept = without_foreign_links(&text, &[]);
            let offsets: Vec<usize> = kept.char_indices().map(|(at, _)| at).collect();
            for at in offsets {
                let (before, after) = kept.split_at(at);
                prop_assert!(bare_link(after, before.chars().next_back()).is_none(), "{} of {}", kept, text);
            }
            prop_assert!(!kept.chars().any(is_hidden));
        }
    }
}
