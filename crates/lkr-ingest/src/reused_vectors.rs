//! Vectors of unchanged passages, taken from the document's previous revision.

use std::collections::HashMap;

use lkr_catalog::{L1Content, chunk_of, l1_id, l1_of};
use lkr_domain::{Document, Layer, PointId};
use lkr_vectors::{Collection, ErrorKind, Include, VectorStore};
use sha2::{Digest, Sha256};

use crate::{
    Result,
    draft_body::DraftPoint,
    passage_vectors::{batches, passage},
};

/// The points of the previous revision by the digest of their passage.
#[derive(Debug, Default)]
pub(crate) struct ReusedVectors {
    points: HashMap<[u8; 32], PointId>,
}

impl ReusedVectors {
    /// The passages of a live document in `collection`, that of the chunks. Damaged points are left out: the document may be
    /// replaced because of them.
    pub(crate) async fn of(
        vectors: &dyn VectorStore,
        batch: usize,
        collection: &Collection,
        document: &Document,
    ) -> Result<Self> {
        let mut points = HashMap::new();
        // The passages were embedded with what the L1 point says; the record may have another title since.
        let l1 = [l1_id(document.doc_id, document.revision)];
        let root = match vectors.get(&Layer::L1.into(), &l1, Include::Payload).await {
            Err(error) if is_damage(&error) => return Ok(Self::default()),
            root => root?,
        };
        let Some(root) = root.into_iter().flatten().next() else { return Ok(Self::default()) };
        let Ok(L1Content { indexed_title, .. }) = l1_of(root.payload) else { return Ok(Self::default()) };
        let count = u32::try_from(document.counts.chunks).unwrap_or(u32::MAX);
        for range in batches(count, batch) {
            let id = |n| PointId::derive(document.doc_id, document.revision, Layer::Chunks, n);
            let ids: Vec<PointId> = range.map(id).collect();
            let stored = match vectors.get(collection, &ids, Include::Payload).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
                Err(error) if is_damage(&error) => continue,
                stored => stored?,
            };
            for point in stored.into_iter().flatten() {
                if let Ok(chunk) = chunk_of(point.payload) {
                    points.insert(digest(&passage(&indexed_title, &chunk)), point.id);
                }
            }
        }
        Ok(Self { points })
    }

    /// The vectors of these chunks in `collection`; `None` for a passage that is new.
    pub(crate) async fn vectors(
        &self,
        vectors: &dyn VectorStore,
        collection: &Collection,
        chunks: &[DraftPoint],
    ) -> Result<Vec<Option<Vec<f32>>>> {
        let mut found = vec![None; chunks.len()];
        let known = chunks.iter().map(|chunk| self.points.get(&digest(&chunk.passage)));
        let known: Vec<(usize, PointId)> =
            known.enumerate().filter_map(|(at, id)| Some((at, *id?))).collect();
        if known.is_empty() {
            return Ok(found);
        }
        let ids: Vec<PointId> = known.iter().map(|(_, id)| *id).collect();
        let stored = match vectors.get(collection, &ids, Include::All).await {
            Err(error) if is_damage(&error) => return Ok(found),
            stored => stored?,
        };
        for ((at, _), point) in known.into_iter().zip(stored) {
            if let Some(vector) = found.get_mut(at) {
                *vector = point.and_then(|point| point.dense);
            }
        }
        Ok(found)
    }
}

fn is_damage(error: &lkr_vectors::Error) -> bool {
    error.kind() == ErrorKind::Corrupt
}

fn digest(passage: &str) -> [u8; 32] {
    Sha256::digest(passage).into()
}
