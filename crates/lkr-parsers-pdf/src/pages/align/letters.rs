//! Letters with the words that they form.

use std::ops::Range;

/// Letters with the words that they form.
#[derive(Debug, Default)]
pub(super) struct Letters {
    pub(super) letters: Vec<char>,
    /// Whether a word begins with each letter.
    begins_word: Vec<bool>,
}

impl Letters {
    pub(super) fn push(&mut self, letter: char, begins_word: bool) {
        self.letters.push(letter);
        self.begins_word.push(begins_word);
    }

    /// Whether no word continues from before this letter.
    pub(super) fn is_boundary(&self, at: usize) -> bool {
        self.begins_word.get(at).copied().unwrap_or(true)
    }

    /// The ranges of the words.
    pub(super) fn words(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = end;
            end = (start + 1..=self.letters.len()).find(|at| self.is_boundary(*at))?;
            Some(start..end)
        })
    }
}
