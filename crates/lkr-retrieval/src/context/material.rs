//! The chunks that a context may be made of.

use std::collections::{BTreeSet, HashMap};

use lkr_catalog::chunk_of;
use lkr_domain::{CharSpan, Chunk, DocId, Layer, PointId};
use lkr_vectors::VectorStore;
use tokio::task::spawn_blocking;

use crate::{Result, assemble::QueryMarks, live::Documents, points, retrieve::Retrieved};

/// The chunks on each side of a chunk that was found that may be taken for its sake.
pub(super) const REACH: u32 = 8;
/// The tokens of a budget for which the neighbours of one more candidate are read, about half a chunk.
const TOKENS_A_CANDIDATE: usize = 100;
/// The candidates whose neighbours are read with any budget.
const MIN_EXPANDED: usize = 8;

/// A chunk: its document and its ordinal there.
pub(super) type ChunkKey = (DocId, u32);

/// A chunk that the search found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundChunk {
    pub(super) key: ChunkKey,
    /// The score that a search shows.
    pub(super) score: f32,
}

/// A chunk of the context, or the sentences of it that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) key: ChunkKey,
    /// The rank of the chunk for whose sake it was chosen.
    pub(super) rank: usize,
    /// Its range in the extracted text.
    pub(super) span: CharSpan,
}

/// What the search found, with the chunks around it.
#[derive(Debug)]
pub(super) struct Material {
    /// The chunks that the search found, best first.
    pub(super) candidates: Vec<FoundChunk>,
    /// The chunks that were found, and those around the best of them.
    pub(super) chunks: HashMap<ChunkKey, Chunk>,
    /// The records of the documents.
    pub(super) documents: Documents,
    pub(super) marks: QueryMarks,
}

impl Material {
    /// Reads the chunks around the best of those that were found, as many as a budget may need. Chunks of a revision that
    /// was replaced meanwhile may be missing.
    pub(super) async fn read(
        vectors: &dyn VectorStore,
        retrieved: Retrieved,
        marks: QueryMarks,
        max_tokens: usize,
    ) -> Result<Self> {
        let Retrieved { ranked, mut contents, documents, .. } = retrieved;
        let found = ranked.candidates.iter().filter_map(|candidate| {
            let chunk = contents.chunks.remove(&candidate.id)?;
            documents.contains_key(&candidate.origin.doc_id).then_some(())?;
            Some((
                FoundChunk { key: (candidate.origin.doc_id, chunk.ordinal), score: candidate.score },
                chunk,
            ))
        });
        let (candidates, chunks): (Vec<_>, Vec<_>) = found.unzip();
        let mut chunks: HashMap<ChunkKey, Chunk> =
            candidates.iter().map(|found: &FoundChunk| found.key).zip(chunks).collect();
        let expanded = candidates.iter().take(MIN_EXPANDED + max_tokens / TOKENS_A_CANDIDATE);
        let around = expanded.flat_map(|found| {
            let (doc_id, ordinal) = found.key;
            (ordinal.saturating_sub(REACH)..=ordinal.saturating_add(REACH))
                .map(move |ordinal| (doc_id, ordinal))
        });
        let is_missing = |key: &ChunkKey| {
            let count = documents.get(&key.0).map_or(0, |document| document.counts.chunks);
            u64::from(key.1) < count && !chunks.contains_key(key)
        };
        let missing: BTreeSet<ChunkKey> = around.filter(is_missing).collect();
        let ids = missing.iter().map(|key| chunk_id(&documents, *key)).collect();
        let points = points::read(vectors, Layer::Chunks, ids).await?;
        let read = move || {
            let present = missing.into_iter().zip(points).filter_map(|(key, point)| Some((key, point?)));
            present.map(|(key, point)| Ok((key, chunk_of(point.payload)?))).collect::<Result<Vec<_>>>()
        };
        chunks.extend(spawn_blocking(read).await??);
        Ok(Self { candidates, chunks, documents, marks })
    }

    /// The id of a chunk.
    pub(super) fn chunk_id(&self, key: ChunkKey) -> PointId {
        chunk_id(&self.documents, key)
    }
}

fn chunk_id(documents: &Documents, (doc_id, ordinal): ChunkKey) -> PointId {
    let revision = documents.get(&doc_id).map_or(0, |document| document.revision);
    PointId::derive(doc_id, revision, Layer::Chunks, ordinal)
}
