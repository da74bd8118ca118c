//! Converts texts to token ids and measures how well a vocabulary covers a text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lkr_models::Result;
use serde::Deserialize;
use tokenizers::Tokenizer;

use crate::error;

/// The first cut of a text, in characters for each token of the model's limit: enough for nearly every text.
const FIRST_CUT: usize = 16;
/// The last cut of a text, in characters for each token of the model's limit.
const LAST_CUT: usize = 256;
/// The number of tokens beyond the limit that must separate kept tokens from those that a cut may have changed.
const MARGIN: usize = 128;
/// The last text of so many bytes or fewer is kept with its ids: a query is examined for its language, and then embedded.
const MAX_KEPT_BYTES: usize = 512;
/// The number of characters that are examined for coverage.
const COVERAGE_SAMPLE: usize = 4096;

/// The token ids of one or two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) ids: Vec<u32>,
    /// The index of the first token of type 1 (the second text); the length if there is none.
    pub(crate) second: usize,
}

impl Sequence {
    /// One text.
    pub(crate) const fn single(ids: Vec<u32>) -> Self {
        Self { ids, second: usize::MAX }
    }
}

/// A model's tokenizer.
#[derive(Debug)]
pub(crate) struct TextTokenizer {
    inner: Tokenizer,
    lower_case: bool,
    max_tokens: usize,
    /// The special tokens before and after a text.
    around: [Vec<u32>; 2],
    unknown: Option<u32>,
    /// The last short text, prepared, and its ids.
    last: Mutex<Option<(String, Vec<u32>)>>,
}

impl TextTokenizer {
    /// Reads tokenizer.json from `bytes`; `path` is for messages.
    pub(crate) fn load(path: &Path, bytes: &[u8], max_tokens: usize, lower_case: bool) -> Result<Self> {
        let mut inner = guarded(|| Tokenizer::from_bytes(bytes)).map_err(|why| error::file(path, why))?;
        // `ids` applies the limit of the folder, and nothing is padded.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|why| error::file(path, why))?;
        let around = special_tokens(&inner).map_err(|why| error::file(path, why))?;
        let specials: usize = around.iter().map(Vec::len).sum();
        if specials == 0 {
            return Err(error::file(path, "a tokenizer without special tokens is not supported"));
        }
        if max_tokens <= specials {
            return Err(error::file(path, format_args!("no text fits the limit of {max_tokens} tokens")));
        }
        let unknown = unknown_token(&inner, bytes).map_err(|why| error::file(path, why))?;
        Ok(Self { inner, lower_case, max_tokens, around, unknown, last: Mutex::default() })
    }

    /// The token ids of `text`, cut at its end to the model's limit, with special tokens.
    pub(crate) fn single(&self, text: &str) -> Result<Sequence> {
        let [before, after] = &self.around;
        let room = self.max_tokens.saturating_sub(before.len() + after.len());
        let text = self.without_special_tokens(text, room)?;
        let kept = text.iter().take(room);
        Ok(Sequence::single(before.iter().chain(kept).chain(after).copied().collect()))
    }

    /// The token ids of `text` without special tokens: all of them, or more than `room`.
    pub(crate) fn without_special_tokens(&self, text: &str, room: usize) -> Result<Vec<u32>> {
        let text = self.prepare(text);
        let mut characters = room.saturating_mul(FIRST_CUT);
        let last = room.saturating_mul(LAST_CUT);
        loop {
            let cut = prefix(&text, characters);
            let ids = self.ids(cut).map_err(error::internal)?;
            let complete = cut.len() == text.len() || characters >= last;
            if complete || ids.len() >= room + MARGIN {
                return Ok(ids);
            }
            characters = characters.saturating_mul(4).min(last);
        }
    }

    /// The tokenizer itself.
    pub(crate) const fn inner(&self) -> &Tokenizer {
        &self.inner
    }

    /// The number of letters per word piece in the first [`COVERAGE_SAMPLE`] characters. Pieces without a letter, of
    /// numbers and punctuation, do not count: they tell nothing of the language. An unknown token counts as one piece for
    /// each of its letters; otherwise a text of unknown words would seem well covered.
    pub(crate) fn letters_per_piece(&self, text: &str) -> Option<f32> {
        let text = prefix(text, COVERAGE_SAMPLE);
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        let prepared = self.prepare(text);
        let ids = self.ids(&prepared).ok()?;
        let known = ids.iter().filter(|&&id| Some(id) != self.unknown && self.may_have_letters(id)).count();
        let unknown = match self.unknown {
            Some(unknown) if ids.contains(&unknown) => self.letters_of_unknown(&prepared, unknown)?,
            _ => 0,
        };
        (letters > 0).then(|| letters as f32 / (known + unknown).max(1) as f32)
    }

    /// Whether a token has a letter, or may be a part of one.
    ///
    /// Marks of the beginning of a word (`▁`, and `Ġ`, `Ċ` and `ĉ` for a space, a line end and a tab) are no letters. Vocabularies
    /// of bytes write each byte as a character below U+0200, so there only ASCII characters are what they seem.
    fn may_have_letters(&self, id: u32) -> bool {
        let is_mark = |c: char| matches!(c, '\u{2581}' | '\u{120}' | '\u{10A}' | '\u{109}');
        let is_other = |c: char| is_mark(c) || !c.is_alphabetic() && (c.is_ascii() || c >= '\u{200}');
        self.inner.id_to_token(id).is_none_or(|token| !token.chars().all(is_other))
    }

    /// The ids of a prepared text.
    fn ids(&self, prepared: &str) -> tokenizers::Result<Vec<u32>> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = prepared.len() <= MAX_KEPT_BYTES;
        if is_short && let Some((_, ids)) = last().as_ref().filter(|(text, _)| text == prepared) {
            return Ok(ids.clone());
        }
        let ids = guarded(|| self.inner.encode_fast(prepared, false))?.get_ids().to_vec();
        if is_short {
            *last() = Some((prepared.to_owned(), ids.clone()));
        }
        Ok(ids)
    }

    /// The number of letters in the unknown tokens of a prepared text. Where tokens are takes time to compute, and is needed of
    /// unknown ones alone.
    fn letters_of_unknown(&self, prepared: &str, unknown: u32) -> Option<usize> {
        let encoding = guarded(|| self.inner.encode_char_offsets(prepared, false)).ok()?;
        let tokens = encoding.get_ids().iter().zip(encoding.get_offsets());
        let places = tokens.filter(|&(&id, _)| id == unknown).map(|(_, &place)| place);
        let letters = |(start, end): (usize, usize)| {
            let token = prepared.chars().skip(start).take(end.saturating_sub(start));
            token.filter(|c| c.is_alphabetic()).count()
        };
        Some(places.map(letters).sum())
    }

    /// The preprocessing of the reference.
    fn prepare(&self, text: &str) -> String {
        if self.lower_case { text.trim().to_lowercase() } else { text.trim().to_owned() }
    }
}

/// The first `characters` characters of `text`.
fn prefix(text: &str, characters: usize) -> &str {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(index, _)| index);
    text.get(..end).unwrap_or(text)
}

/// What the tokenizer library answers, which panics on some damaged files.
pub(crate) fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("the tokenizer library panicked: {message}").into())
    })
}

/// The special tokens before and after a text, found by encoding a text of one letter.
fn special_tokens(tokenizer: &Tokenizer) -> tokenizers::Result<[Vec<u32>; 2]> {
    let bare = guarded(|| tokenizer.encode_fast("a", false))?;
    let full = guarded(|| tokenizer.encode_fast("a", true))?;
    let (bare, full) = (bare.get_ids(), full.get_ids());
    let start = full.windows(bare.len().max(1)).position(|window| window == bare);
    let parts = start.and_then(|start| {
        let (before, rest) = full.split_at_checked(start)?;
        let (_, after) = rest.split_at_checked(bare.len())?;
        Some([before.to_vec(), after.to_vec()])
    });
    parts.ok_or_else(|| "the post-processor is not supported".into())
}

/// The id of the unknown token, which WordPiece names and Unigram numbers.
fn unknown_token(tokenizer: &Tokenizer, bytes: &[u8]) -> serde_json::Result<Option<u32>> {
    #[derive(Deserialize)]
    struct File {
        model: Model,
    }
    #[derive(Deserialize)]
    struct Model {
        unk_token: Option<String>,
        unk_id: Option<u32>,
    }
    let File { model } = serde_json::from_slice(bytes)?;
    Ok(model.unk_id.or_else(|| tokenizer.token_to_id(&model.unk_token?)))
}
