//! Pieces that touch become one passage.

use std::collections::{BTreeMap, HashMap, HashSet};

use lkr_catalog::Texts;
use lkr_domain::{CharSpan, DocId};

use crate::context::material::{Material, Piece};

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

/// Whether the end of one chunk and the beginning of the next one are both in the context.
fn touch(material: &Material, before: Piece, after: Piece) -> bool {
    let span = |piece: Piece| material.chunks.get(&piece.key).map(|chunk| chunk.span);
    before.key.1.checked_add(1) == Some(after.key.1)
        && span(before).is_some_and(|span| span.end == before.span.end)
        && span(after).is_some_and(|span| span.start == after.span.start)
}

/// The extracted texts of the documents with passages of several chunks. Chunks contain the text of the others.
///
/// # Errors
/// The first text that cannot be read, with its document.
pub(super) async fn texts(
    material: &Material,
    pieces: &[Piece],
    texts: &Texts,
) -> Result<HashMap<DocId, String>, (DocId, lkr_catalog::Error)> {
    let is_merged =
        |(doc_id, runs): (DocId, Vec<Run>)| runs.iter().any(|run| run.pieces.len() > 1).then_some(doc_id);
    let merged: HashSet<DocId> = runs(material, pieces, true).into_iter().filter_map(is_merged).collect();
    let mut read = HashMap::with_capacity(merged.len());
    for doc_id in merged {
        let Some(document) = material.documents.get(&doc_id) else { continue };
        let text = texts.get(doc_id, document.revision, Some(&document.content_sha256)).await;
        read.insert(doc_id, text.map_err(|error| (doc_id, error))?);
    }
    Ok(read)
}
