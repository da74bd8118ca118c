//! Tokenizes two texts as one sequence.

use std::path::Path;

use lkr_models::Result;
use tokenizers::Tokenizer;

use crate::error;
use crate::tokens::{Sequence, TextTokenizer, guarded};

/// A tokenizer of pairs of query and passage.
#[derive(Debug)]
pub(crate) struct PairTokenizer {
    texts: TextTokenizer,
    /// The number of tokens of the two texts that fit beside special tokens.
    room: usize,
    /// The special tokens before, between and after them.
    around: [Vec<u32>; 3],
    /// Whether the second text has token type 1.
    typed: bool,
}

impl PairTokenizer {
    /// Reads tokenizer.json from `bytes`; `path` is for messages. `types` says whether the model distinguishes token
    /// types.
    pub(crate) fn load(path: &Path, bytes: &[u8], max_tokens: usize, types: bool) -> Result<Self> {
        let texts = TextTokenizer::load(path, bytes, max_tokens, false)?;
        let (around, typed) = special_tokens(texts.inner()).map_err(|why| error::file(path, why))?;
        let specials: usize = around.iter().map(Vec::len).sum();
        if max_tokens <= specials {
            return Err(error::file(path, format_args!("no pair fits the limit of {max_tokens} tokens")));
        }
        Ok(Self { texts, room: max_tokens - specials, around, typed: types && typed })
    }

    /// The token ids of one text of a pair.
    pub(crate) fn text(&self, text: &str) -> Result<Vec<u32>> {
        self.texts.without_special_tokens(text, self.room)
    }

    /// A query with a passage. If they are too long, the longer one is cut at its end until both are equally long, then
    /// both are cut, as in the reference.
    pub(crate) fn pair(&self, query: &[u32], passage: &[u32]) -> Sequence {
        let short = query.len().min(passage.len()).min(self.room / 2);
        let long = self.room - short;
        let (first, second) = if query.len() <= passage.len() { (short, long) } else { (long, short) };
        let [before, between, after] = &self.around;
        let mut ids = before.clone();
        ids.extend(query.iter().take(first).chain(between));
        let second_begins = ids.len();
        ids.extend(passage.iter().take(second).chain(after));
        Sequence { ids, second: if self.typed { second_begins } else { usize::MAX } }
    }
}

/// The special tokens before, between and after two texts, and whether the second one has type 1, found by encoding
/// texts of one letter.
fn special_tokens(tokenizer: &Tokenizer) -> tokenizers::Result<([Vec<u32>; 3], bool)> {
    let bare = guarded(|| tokenizer.encode_fast("a", false))?;
    let full = guarded(|| tokenizer.encode_fast(("a", "a"), true))?;
    let (bare, ids) = (bare.get_ids(), full.get_ids());
    let next = |from: usize| {
        let rest = ids.get(from..)?;
        Some(from + rest.windows(bare.len().max(1)).position(|window| window == bare)?)
    };
    let parts = || {
        let first = next(0)?;
        let second = next(first + bare.len())?;
        let part = |range: std::ops::Range<usize>| Some(ids.get(range)?.to_vec());
        let around =
            [part(0..first)?, part(first + bare.len()..second)?, part(second + bare.len()..ids.len())?];
        Some((around, full.get_type_ids().get(second) == Some(&1)))
    };
    parts().ok_or_else(|| "the post-processor is not supported for pairs".into())
}
