//! Finds an extracted text among the letters of its page. The text may come from another reader and have been laid out, so
//! it may lack letters of the page, have others, and have them in another order.
//!
//! Both sides are compared in their normal form. Equal stretches of words are claimed, the longest first, then equal
//! stretches of letters, so that each letter has one place at most. What is left between two neighbours is compared letter
//! by letter. Words that are left are claimed if the page has as many of them left as the text.

mod letters;
mod stretches;
mod subsequence;
#[cfg(test)]
mod tests;

use self::letters::Letters;
use super::{Letter, Passage, PlacedLetter, normal::normal, union};

/// The passages of a page in their normal form.
pub(super) struct Passages {
    letters: Letters,
    /// The position of each letter in the extracted text of the document.
    positions: Vec<u32>,
}

/// Most letters of a text that are looked for. Chosen, not measured: a dense page of a newspaper has 30,000.
const MAX_LETTERS: usize = 200_000;

impl Passages {
    pub(super) fn new(passages: &[Passage]) -> Self {
        let (mut letters, mut positions) = (Letters::default(), Vec::new());
        for Passage { start, text } in passages {
            let mut begins_word = true;
            for (at, c) in (*start..).zip(text.chars()) {
                begins_word |= c.is_whitespace();
                for letter in normal(c) {
                    letters.push(letter, std::mem::take(&mut begins_word));
                    positions.push(at);
                }
            }
            if positions.len() >= MAX_LETTERS {
                break;
            }
        }
        Self { letters, positions }
    }
}

/// The places of the letters of a text among those of its page, whose lines are numbered.
pub(super) fn place(text: &Passages, page: &[Letter], lines: &[u32]) -> Vec<PlacedLetter> {
    let (mut letters, mut indices) = (Letters::default(), Vec::new());
    for (index, letter) in page.iter().enumerate() {
        let mut begins_word = letter.begins_word;
        for c in normal(letter.c) {
            letters.push(c, std::mem::take(&mut begins_word));
            indices.push(index);
        }
    }
    let matches = stretches::align(&text.letters, &letters);
    let mut placed: Vec<PlacedLetter> = Vec::new();
    for (at, found) in text.positions.iter().zip(matches) {
        let index = found.and_then(|found| indices.get(found));
        let Some((letter, line)) = index.and_then(|index| page.get(*index).zip(lines.get(*index))) else {
            continue;
        };
        match placed.last_mut().filter(|last| last.at == *at && last.line == *line) {
            Some(last) => last.place = union(last.place, letter.place),
            None => placed.push(PlacedLetter { at: *at, line: *line, place: letter.place }),
        }
    }
    placed
}
