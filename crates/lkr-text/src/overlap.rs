use std::{cmp::Reverse, collections::HashSet, ops::Range};

use crate::{Analyzer, Language, QueryTerm};

/// The common words of a query and a short text such as a heading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overlap {
    /// The share of the query's words that the text contains, from 0 to 1.
    pub of_query: f64,
    /// The share of the text's words that the query contains, from 0 to 1.
    pub of_text: f64,
}

/// The overlap of a query and a text in `language`. The text is analysed like an indexed document.
///
/// Each word counts once, in any of its forms. A compound is one word; if it does not match as a whole, the share of
/// its matching parts counts. Words of the text without a letter, such as the number of a heading, do not count.
#[must_use]
pub fn overlap(query: &[QueryTerm], text: &str, language: Option<Language>) -> Overlap {
    QueryWords::new(query).overlap(text, language)
}

/// The words of a query, to be compared with several texts.
#[derive(Debug)]
pub struct QueryWords<'t> {
    words: Vec<OverlapWord<'t>>,
    forms: HashSet<&'t str>,
}

impl<'t> QueryWords<'t> {
    /// The words of these terms.
    #[must_use]
    pub fn new(query: &'t [QueryTerm]) -> Self {
        let words = words(query.iter().map(|term| (&term.range, term.term.as_str())));
        let forms = forms(&words);
        Self { words, forms }
    }

    /// The [`overlap`] of the query and a text in `language`.
    #[must_use]
    pub fn overlap(&self, text: &str, language: Option<Language>) -> Overlap {
        let tokens = Analyzer::new(language).analyze(text);
        let mut text = words(tokens.iter().map(|token| (&token.range, token.term.as_str())));
        text.retain(|word| word.forms.iter().any(|form| form.chars().any(char::is_alphabetic)));
        Overlap { of_query: share(&self.words, &forms(&text)), of_text: share(&text, &self.forms) }
    }
}

/// A word and, for a compound, its parts.
#[derive(Debug, Default)]
struct OverlapWord<'t> {
    /// Its forms, the likeliest first.
    forms: Vec<&'t str>,
    parts: Vec<OverlapWord<'t>>,
}

/// All forms of words and of their parts.
fn forms<'t>(words: &[OverlapWord<'t>]) -> HashSet<&'t str> {
    words.iter().flat_map(OverlapWord::all_forms).collect()
}

/// The share of `words` that are among `others`; 0 without words.
fn share(words: &[OverlapWord<'_>], others: &HashSet<&str>) -> f64 {
    mean(words.iter().map(|word| word.share_among(others)))
}

impl<'t> OverlapWord<'t> {
    fn all_forms(&self) -> impl Iterator<Item = &'t str> {
        self.forms.iter().chain(self.parts.iter().flat_map(|part| &part.forms)).copied()
    }

    fn share_among(&self, others: &HashSet<&str>) -> f64 {
        if self.forms.iter().any(|form| others.contains(form)) {
            return 1.0;
        }
        mean(self.parts.iter().map(|part| part.share_among(others)))
    }
}

fn mean(shares: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = shares.len();
    if count == 0 { 0.0 } else { shares.sum::<f64>() / count as f64 }
}

/// The distinct words of terms, compared by their likeliest form.
fn words<'t>(terms: impl Iterator<Item = (&'t Range<usize>, &'t str)>) -> Vec<OverlapWord<'t>> {
    let mut terms: Vec<_> = terms.collect();
    // A whole comes before its parts. The sort is stable, so the forms of a word keep their order.
    terms.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
    let mut words: Vec<(&Range<usize>, OverlapWord<'_>)> = Vec::new();
    for same in terms.chunk_by(|(one, _), (other, _)| one == other) {
        let Some(&(range, _)) = same.first() else { continue };
        let word = OverlapWord { forms: same.iter().map(|(_, form)| *form).collect(), parts: Vec::new() };
        match words.last_mut() {
            Some((whole, of)) if range.end <= whole.end => of.parts.push(word),
            _ => words.push((range, word)),
        }
    }
    let mut seen = HashSet::new();
    words.into_iter().map(|(_, word)| word).filter(|word| seen.insert(word.forms.first().copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{detect, query_terms};

    #[track_caller]
    fn check(query: &str, text: &str, of_query: f64, of_text: f64) {
        let overlap = overlap(&query_terms(query), text, detect(text));
        assert_eq!(overlap, Overlap { of_query, of_text }, "{query} / {text}");
    }

    #[test]
    fn overlap_counts_each_word_once_in_any_form() {
        check("What is the maximum number of layers?", "Layers", 1.0 / 3.0, 1.0);
        check("create a test, then test the tests", "Creating Test Cases", 1.0, 2.0 / 3.0);
        check("fiscal year", "4.1 Fiscal Year", 1.0, 1.0);
        check("which git-lab runner", "Git lab runners", 1.0, 1.0);
        check("the layers of GitLab", "Layers", 0.5, 1.0);
        check("git hooks", "GitLab hooks", 1.0, 0.75);
        check("東京タワー", "東京", 0.25, 1.0);
        check("volcano", "Oceans", 0.0, 0.0);
        check("volcano", "4.1", 0.0, 0.0);
        check("", "Oceans", 0.0, 0.0);
    }
}
