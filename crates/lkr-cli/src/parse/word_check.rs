//! Checks that each word of a text is found by a search for it.

use std::fmt;

use lkr::{is_markup, stem_and_suffix};
use lkr_layers::{LayerOptions, WordCoverage, layer, word_coverage};

use super::parsed_file::ParsedFile;

/// The most missing words that are named.
const MAX_NAMED: usize = 8;

/// The words of the files that were checked.
#[derive(Debug, Default)]
pub(super) struct WordCheck {
    files: usize,
    incomplete_files: usize,
    words: usize,
    missing: usize,
}

impl WordCheck {
    /// Checks a file as if it was uploaded, so that its title is its name. Returns a line about the words that no
    /// search would find, if there are some.
    pub(super) fn add(&mut self, file: &ParsedFile) -> Option<String> {
        let (title, _) = stem_and_suffix(&file.file_name);
        let options =
            LayerOptions { title_is_file_name: is_markup(&file.file_name), ..LayerOptions::default() };
        let layered = layer(&file.parsed, title, &options);
        self.count(&word_coverage(&file.parsed, &layered))
    }

    fn count(&mut self, coverage: &WordCoverage) -> Option<String> {
        self.files += 1;
        self.words += coverage.words;
        self.missing += coverage.missing.len();
        let named = coverage.missing.get(..MAX_NAMED).unwrap_or(&coverage.missing);
        if named.is_empty() {
            return None;
        }
        self.incomplete_files += 1;
        let (missing, words) = (coverage.missing.len(), coverage.words);
        Some(format!("no search finds {missing} of {words} words: {}", named.join(" ")))
    }

    /// Whether all words would be found.
    pub(super) const fn is_complete(&self) -> bool {
        self.missing == 0
    }
}

impl fmt::Display for WordCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, incomplete_files, words, missing } = self;
        write!(f, "words: {words} in {files} files; no search finds {missing}, in {incomplete_files} files")
    }
}

#[cfg(test)]
mod tests {
    use lkr::Parsed;

    use super::*;

    #[test]
    fn word_check_counts_and_names_missing_words() {
        let mut check = WordCheck::default();
        let parsed = Parsed { text: "Zebras rest.".to_owned(), ..Parsed::default() };
        let file = ParsedFile { file_name: "notes.md".to_owned(), plugin: "markdown".to_owned(), parsed };
        assert_eq!(check.add(&file), None);
        assert!(check.is_complete());
        let missing = (0..9).map(|n| format!("w{n}")).collect();
        let line = check.count(&WordCoverage { words: 20, missing }).unwrap();
        assert_eq!(line, "no search finds 9 of 20 words: w0 w1 w2 w3 w4 w5 w6 w7");
        assert!(!check.is_complete());
        assert_eq!(check.to_string(), "words: 22 in 2 files; no search finds 9, in 1 files");
    }
}
