//! Which pieces of documents fit in a budget of tokens.

use std::collections::{BTreeMap, HashMap};

use lkr_domain::{CharSpan, Chunk, DocId};
use lkr_text::{Language, highlights, prompt_tokens, sentences};

use crate::context::{
    expand::{Wanted, wanted},
    material::{ChunkKey, Material, Piece},
    render::{passage_head, title_line},
};

/// How many chunks that do not fit are passed over for smaller ones.
const MAX_PASSED_OVER: usize = 3;

/// The pieces that fit in `max_tokens`, in the order in which they were chosen.
///
/// The tokens of the text between two chunks are guessed from the headings there; rendering has the last word.
pub(super) fn pack(material: &Material, max_tokens: usize) -> Vec<Piece> {
    let mut packing =
        Packing { material, max_tokens, tokens: 0, chosen: BTreeMap::new(), texts: HashMap::new() };
    let mut pieces = Vec::new();
    let mut first_passed_over = None;
    let mut passed_over = 0;
    for Wanted { key, rank, .. } in wanted(&material.candidates, &material.chunks) {
        let Some(chunk) = material.chunks.get(&key) else { continue };
        if packing.is_repetition(key, chunk) {
            continue;
        }
        if packing.try_add(key, chunk) {
            pieces.push(Piece { key, rank, span: chunk.span });
            continue;
        }
        first_passed_over.get_or_insert((key, rank, chunk));
        passed_over += 1;
        if passed_over > MAX_PASSED_OVER {
            break;
        }
    }
    if let Some((key, rank, chunk)) = first_passed_over
        && let Some(span) = packing.sentences_that_fit(key, chunk)
    {
        pieces.push(Piece { key, rank, span });
    }
    pieces
}

/// The chunks that were chosen so far.
struct Packing<'a> {
    material: &'a Material,
    max_tokens: usize,
    tokens: usize,
    chosen: BTreeMap<ChunkKey, &'a Chunk>,
    /// The documents of the texts that were chosen.
    texts: HashMap<&'a str, DocId>,
}

impl<'a> Packing<'a> {
    /// Whether another document has the same text.
    fn is_repetition(&self, key: ChunkKey, chunk: &Chunk) -> bool {
        self.texts.get(chunk.text.trim()).is_some_and(|doc_id| *doc_id != key.0)
    }

    /// Adds a chunk if it fits.
    fn try_add(&mut self, key: ChunkKey, chunk: &'a Chunk) -> bool {
        let tokens = self.tokens_with(key, chunk, &chunk.text);
        if tokens > self.max_tokens {
            return false;
        }
        self.tokens = tokens;
        self.chosen.insert(key, chunk);
        self.texts.entry(chunk.text.trim()).or_insert(key.0);
        true
    }

    fn neighbour(&self, (doc_id, ordinal): ChunkKey, forward: bool) -> Option<&'a Chunk> {
        let ordinal = if forward { ordinal.checked_add(1) } else { ordinal.checked_sub(1) };
        self.chosen.get(&(doc_id, ordinal?)).copied()
    }

    /// The tokens of the context with a part of one more chunk.
    fn tokens_with(&self, key: ChunkKey, chunk: &Chunk, text: &str) -> usize {
        let (before, after) = (self.neighbour(key, false), self.neighbour(key, true));
        let start = before.map_or_else(|| head_tokens(chunk), |before| gap_tokens(before, chunk));
        let end = after.map_or(0, |after| gap_tokens(chunk, after));
        let replaced = after.map_or(0, head_tokens);
        let is_new = self.chosen.range((key.0, 0)..=(key.0, u32::MAX)).next().is_none();
        let title = self.material.documents.get(&key.0).map_or("", |document| document.title.as_str());
        let title = if is_new { prompt_tokens(&title_line(title)) } else { 0 };
        (self.tokens + title + start + prompt_tokens(text) + 1 + end).saturating_sub(replaced)
    }

    /// The range of the sentences of a chunk that fit: those beside a chunk that was chosen, else those with the most
    /// words of the query.
    fn sentences_that_fit(&self, key: ChunkKey, chunk: &Chunk) -> Option<CharSpan> {
        let ranges = sentences(&chunk.text);
        let text = |first: usize, last: usize| {
            let range = ranges.get(first)?.start..ranges.get(last)?.end;
            chunk.text.get(range)
        };
        let fits = |first: usize, last: usize| {
            text(first, last).is_some_and(|text| self.tokens_with(key, chunk, text) <= self.max_tokens)
        };
        let runs = match (self.neighbour(key, false), self.neighbour(key, true)) {
            (Some(_), _) => Vec::from_iter(longest_run(0, ranges.len(), &fits)),
            (None, Some(_)) => Vec::from_iter(longest_run_to_the_end(ranges.len(), &fits)),
            (None, None) => {
                (0..ranges.len()).filter_map(|first| longest_run(first, ranges.len(), &fits)).collect()
            }
        };
        let language = self.material.documents.get(&key.0).and_then(|it| Language::from_code(&it.language));
        let marks = &self.material.marks;
        let matches = |&(first, last): &(usize, usize)| {
            text(first, last)
                .map_or(0, |text| highlights(&marks.terms, &marks.literals, text, language).len())
        };
        // Of runs with equally many words of the query, the first.
        let (first, last) = runs.into_iter().rev().max_by_key(matches)?;
        let chars = |end: usize| {
            u32::try_from(chunk.text.get(..end).unwrap_or_default().chars().count()).unwrap_or(u32::MAX)
        };
        let start = chunk.span.start.saturating_add(chars(ranges.get(first)?.start));
        let end = chunk.span.start.saturating_add(chars(ranges.get(last)?.end));
        Some(CharSpan { start, end: end.min(chunk.span.end) })
    }
}

/// The first and the last of as many sentences from `first` on as fit.
fn longest_run(first: usize, count: usize, fits: &impl Fn(usize, usize) -> bool) -> Option<(usize, usize)> {
    (first..count).take_while(|&last| fits(first, last)).last().map(|last| (first, last))
}

/// The first and the last of as many sentences at the end as fit.
fn longest_run_to_the_end(count: usize, fits: &impl Fn(usize, usize) -> bool) -> Option<(usize, usize)> {
    let last = count.checked_sub(1)?;
    (0..count).rev().take_while(|&first| fits(first, last)).last().map(|first| (first, last))
}

/// The tokens of a passage's marker and headings.
fn head_tokens(chunk: &Chunk) -> usize {
    // The marker has at most four characters, which is one token more than the shortest.
    prompt_tokens(&passage_head(1, &chunk.path)) + 1
}

/// An estimate of the tokens between two chunks of a passage: line breaks, and the headings that differ.
fn gap_tokens(before: &Chunk, after: &Chunk) -> usize {
    let shared = before.path.iter().zip(&after.path).take_while(|(a, b)| a == b).count();
    let headings = after.path.iter().skip(shared).map(|heading| prompt_tokens(heading) + 3).sum::<usize>();
    let chars = after.span.start.saturating_sub(before.span.end) as usize;
    (2 + headings).min(chars)
}
