//! Pieces that touch become one passage.

use std::collections::{BTreeMap, HashMap};

use lkr_catalog::Texts;
use lkr_domain::{CharSpan, DocId};

use crate::{
    context::material::{Material, Piece},
    searcher_state::SearcherState,
};

/// The most code points between two chunks of a passage. All that is between them is in memory with the passage and becomes a part
/// of it.
const MAX_GAP: u32 = 1_000;

/// The extracted text of each run of several pieces, with its range.
pub(super) type RunTexts = HashMap<DocId, Vec<(CharSpan, String)>>;

/// Why the text of a run cannot be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// Too many texts are being read.
    Overloaded(crate::Error),
    /// The text of this document cannot be read.
    Text(DocId, lkr_catalog::Error),
}

/// Pieces of a document that follow one another without a gap but for white space and headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) pieces: Vec<Piece>,
}

impl Run {
    /// The range in the extracted text.
    pub(super) fn span(&self) -> CharSpan {
        let start = self.pieces.first().map_or(0, |piece| piece.span.start);
        CharSpan { start, end: self.pieces.last().map_or(start, |piece| piece.span.end) }
    }

    /// The rank of the best chunk for whose sake a piece was chosen.
    pub(super) fn rank(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rank).min().unwrap_or(usize::MAX)
    }
}

/// The runs of each document in the order of its text, the document with the best of them first. Without merging, each piece is
/// a run.
pub(super) fn runs(material: &Material, pieces: &[Piece], merge: bool) -> Vec<(DocId, Vec<Run>)> {
    let mut by_document: BTreeMap<DocId, Vec<Piece>> = BTreeMap::new();
    for piece in pieces {
        by_document.entry(piece.key.0).or_default().push(*piece);
    }
    let mut documents: Vec<(DocId, Vec<Run>)> = Vec::with_capacity(by_document.len());
    for (doc_id, mut pieces) in by_document {
        pieces.sort_by_key(|piece| piece.key.1);
        let mut runs: Vec<Run> = Vec::new();
        for piece in pieces {
            match runs.last_mut() {
                Some(run) if merge && run.pieces.last().is_some_and(|last| touch(material, *last, piece)) => {
                    run.pieces.push(piece);
                }
                _ => runs.push(Run { pieces: vec![piece] }),
            }
        }
        documents.push((doc_id, runs));
    }
    documents.sort_by_key(|(_, runs)| runs.iter().map(Run::rank).min());
    documents
}

/// Whether the end of one chunk and the beginning of the next one are both in the context, with little between them.
fn touch(material: &Material, before: Piece, after: Piece) -> bool {
    let span = |piece: Piece| material.chunks.get(&piece.key).map(|chunk| chunk.span);
    before.key.1.checked_add(1) == Some(after.key.1)
        && span(before).is_some_and(|span| span.end == before.span.end)
        && span(after).is_some_and(|span| span.start == after.span.start)
        && after.span.start.saturating_sub(before.span.end) <= MAX_GAP
}

/// The extracted texts of the runs of several pieces. Chunks contain the text of the others.
///
/// One document is read at a time, and no more is kept of it than its runs. See [`SearcherState::text_permit`] for how many are
/// read at once.
///
/// # Errors
/// That of the first text that cannot be read.
pub(super) async fn run_texts(
    material: &Material,
    pieces: &[Piece],
    state: &SearcherState,
    texts: &Texts,
) -> Result<RunTexts, ReadError> {
    let mut read = RunTexts::new();
    for (doc_id, runs) in runs(material, pieces, true) {
        let merged = runs.iter().filter(|run| run.pieces.len() > 1);
        let spans: Vec<CharSpan> = merged.map(Run::span).collect();
        let Some(document) = material.documents.get(&doc_id).filter(|_| !spans.is_empty()) else { continue };
        let _permit = state.text_permit().await.map_err(ReadError::Overloaded)?;
        let (revision, sha256) = (document.revision, Some(document.content_sha256.as_str()));
        let cut = texts.spans(doc_id, revision, sha256, spans.clone()).await;
        let cut = cut.map_err(|error| ReadError::Text(doc_id, error))?;
        read.insert(doc_id, spans.into_iter().zip(cut).collect());
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::render::tests::{chunk, doc, material};

    /// How many runs two chunks make with `gap` code points between them.
    fn runs_with_gap(gap: u32) -> usize {
        let (first, mut second) = (chunk(0, &[], "Io has lava."), chunk(1, &[], "Europa has ice."));
        let start = first.span.end + gap;
        second.span = CharSpan { start, end: start + second.span.len() };
        let piece = |ordinal, span| Piece { key: (doc(1), ordinal), rank: 0, span };
        let pieces = [piece(0, first.span), piece(1, second.span)];
        let material = material([(doc(1), first), (doc(1), second)]);
        runs(&material, &pieces, true).into_iter().map(|(_, runs)| runs.len()).sum()
    }

    #[test]
    fn chunks_with_a_long_gap_are_passages_of_their_own() {
        assert_eq!([0, 2, MAX_GAP].map(runs_with_gap), [1; 3]);
        assert_eq!([MAX_GAP + 1, 10_000_000].map(runs_with_gap), [2; 2]);
    }
}
