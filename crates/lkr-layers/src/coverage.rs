use std::{collections::HashSet, ops::Range};

use lkr_domain::{Block, BlockKind, Layered, Parsed};
use lkr_text::{Analyzer, Language, query_terms, token_costs, words};

use crate::indexed::indexed_chunk;

/// The longest compound in characters that no chunk's end cuts: a chunk of the default size holds it.
const LONGEST_COMPOUND: usize = 200;

/// The result of [`word_coverage`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordCoverage {
    /// The number of different words.
    pub words: usize,
    /// The words that no chunk is found by, in the order of the text.
    pub missing: Vec<String>,
}

/// Checks that each word of a text finds it: a search for the word alone, without a model, finds a chunk. `layered` are
/// the layers of `parsed`.
///
/// Words are what the index makes terms of: stop words are none, and a run of a script without spaces is one, as is a
/// compound of more than 200 characters. Furniture has no words, and a heading has those of its title.
#[must_use]
pub fn word_coverage(parsed: &Parsed, layered: &Layered) -> WordCoverage {
    let analyzer = Analyzer::new(Language::from_code(&layered.root.language));
    let mut terms = HashSet::new();
    for chunk in &layered.chunks {
        let indexed = indexed_chunk(&layered.root.indexed_title, chunk);
        analyzer.for_each(&indexed, |term, _| {
            terms.insert(term);
        });
    }
    let (mut seen, mut missing) = (HashSet::new(), Vec::new());
    let mut check = |word| {
        if seen.insert(word) && !query_terms(word).iter().any(|query| terms.contains(&query.term)) {
            missing.push(word.to_owned());
        }
    };
    for part in searchable_parts(parsed) {
        for word in words(part).into_iter().filter_map(|range| part.get(range)) {
            if is_unspaced(word) || word.chars().count() > LONGEST_COMPOUND {
                check(word);
            } else {
                analyzer.for_each(word, |_, range| check(word.get(range).unwrap_or_default()));
            }
        }
    }
    WordCoverage { words: seen.len(), missing }
}

/// Whether a word is a run of characters of a script without spaces: such a run has no joiners and yet several parts.
/// Its terms are bigrams, of which a chunk's end may cut one.
fn is_unspaced(word: &str) -> bool {
    let is_joiner =
        |c: char| !c.is_alphanumeric() && token_costs(c.encode_utf8(&mut [0; 4])).any(|(_, cost)| cost > 0);
    !word.contains(is_joiner) && token_costs(word).nth(1).is_some()
}

/// The text of the blocks and between them, with titles for headings and without furniture.
fn searchable_parts(parsed: &Parsed) -> Vec<&str> {
    let slice = |range: Range<usize>| parsed.text.get(range).unwrap_or_default();
    let mut parts = Vec::new();
    let mut end = 0;
    for Block { kind, range, furniture, .. } in &parsed.blocks {
        parts.push(slice(end..range.start));
        end = range.end;
        parts.push(match kind {
            _ if *furniture => "",
            BlockKind::Heading { title, .. } if !title.trim().is_empty() => title,
            _ => slice(range.clone()),
        });
    }
    parts.push(slice(end..parsed.text.len()));
    parts
}

#[cfg(test)]
mod tests {
    use lkr_domain::{Chunk, Root};

    use super::*;

    fn layered(title: &str, path: &[&str], text: &str) -> Layered {
        let span = lkr_domain::CharSpan { start: 0, end: 1 };
        let path = path.iter().map(|&heading| heading.to_owned()).collect();
        let root = Root {
            title: title.to_owned(),
            indexed_title: title.into(),
            summary: String::new(),
            keywords: Vec::new(),
            language: "en".to_owned(),
            char_count: 1,
        };
        let chunk = Chunk {
            ordinal: 0,
            parent: 0,
            path,
            span,
            pages: None,
            text: text.to_owned(),
            table_header: String::new(),
        };
        Layered { root, l2: Vec::new(), l3: Vec::new(), chunks: vec![chunk] }
    }

    #[test]
    fn word_coverage_names_words_that_no_chunk_has() {
        let text = "# [Io](url) rises\n\nThe moon has volcanoes.\n\nPage 7";
        let block = |kind, words: &str, furniture| {
            let start = text.find(words).unwrap();
            Block { kind, range: start..start + words.len(), page: None, furniture }
        };
        let heading = BlockKind::Heading { level: 1, title: "Io rises".to_owned() };
        let blocks = vec![
            block(heading, "# [Io](url) rises", false),
            block(BlockKind::Paragraph, "The moon has volcanoes.", false),
            block(BlockKind::Paragraph, "Page 7", true),
        ];
        let parsed = Parsed { text: text.to_owned(), blocks, warnings: Vec::new() };
        let missing =
            |title, path: &[&str], text| word_coverage(&parsed, &layered(title, path, text)).missing;
        assert_eq!(missing("notes", &[], "A volcano"), ["Io", "rises", "moon"]);
        assert!(missing("notes", &["Io rises"], "volcanoes moon").is_empty());
        assert!(missing("Io rises", &[], "volcanoes moon").is_empty());
        assert_eq!(word_coverage(&parsed, &layered("", &[], "")).words, 4);
    }
}
