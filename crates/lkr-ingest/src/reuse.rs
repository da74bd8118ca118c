//! Vectors of what did not change, taken over from the document's earlier revision.

use std::collections::HashMap;

use lkr_catalog::{chunk_of, l1_id, l1_of};
use lkr_domain::{Document, Layer, PointId};
use lkr_models::Embedder;
use lkr_vectors::{ErrorKind, Include};
use sha2::{Digest, Sha256};

use crate::{
    Result,
    collection_sets::collection,
    dense::{batches, passage},
    draft::Drafted,
    ingestor::Inner,
};

/// Where the passages of a document's earlier revision have their vectors.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    points: HashMap<[u8; 32], PointId>,
}

impl Earlier {
    /// The passages of the document that is live, as far as it has vectors of this model and they can be read: it may be
    /// replaced because they cannot.
    pub(crate) async fn of(inner: &Inner, embedder: &dyn Embedder, document: &Document) -> Result<Self> {
        let mut points = HashMap::new();
        // The title that its passages were embedded with, whatever it was changed to since.
        let own = [l1_id(document.doc_id, document.revision)];
        let root = match inner.ports.vectors.get(&Layer::L1.into(), &own, Include::Payload).await {
            Err(error) if is_damage(&error) => return Ok(Self::default()),
            root => root?,
        };
        let Some(root) = root.into_iter().flatten().next() else { return Ok(Self::default()) };
        let Ok((title, _)) = l1_of(root.payload) else { return Ok(Self::default()) };
        let collection = collection(Layer::Chunks, Some(&embedder.profile().id))?;
        let count = u32::try_from(document.counts.chunks).unwrap_or(u32::MAX);
        for range in batches(count, inner.options.batch) {
            let id = |n| PointId::derive(document.doc_id, document.revision, Layer::Chunks, n);
            let ids: Vec<PointId> = range.map(id).collect();
            let stored = match inner.ports.vectors.get(&collection, &ids, Include::Payload).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
                Err(error) if is_damage(&error) => continue,
                stored => stored?,
            };
            for point in stored.into_iter().flatten() {
                if let Ok(chunk) = chunk_of(point.payload) {
                    points.insert(digest(&passage(&title, &chunk)), point.id);
                }
            }
        }
        Ok(Self { points })
    }

    /// The vectors of these chunks, where there are some for their very passages.
    pub(crate) async fn vectors(
        &self,
        inner: &Inner,
        model: &str,
        chunks: &[Drafted],
    ) -> Result<Vec<Option<Vec<f32>>>> {
        let mut vectors = vec![None; chunks.len()];
        let known = chunks.iter().map(|chunk| self.points.get(&digest(&chunk.passage)));
        let known: Vec<(usize, PointId)> =
            known.enumerate().filter_map(|(at, id)| Some((at, *id?))).collect();
        if known.is_empty() {
            return Ok(vectors);
        }
        let ids: Vec<PointId> = known.iter().map(|(_, id)| *id).collect();
        let of_model = collection(Layer::Chunks, Some(model))?;
        let stored = match inner.ports.vectors.get(&of_model, &ids, Include::All).await {
            Err(error) if is_damage(&error) => return Ok(vectors),
            stored => stored?,
        };
        for ((at, _), point) in known.into_iter().zip(stored) {
            if let Some(vector) = vectors.get_mut(at) {
                *vector = point.and_then(|point| point.dense);
            }
        }
        Ok(vectors)
    }
}

fn is_damage(error: &lkr_vectors::Error) -> bool {
    error.kind() == ErrorKind::Corrupt
}

fn digest(passage: &str) -> [u8; 32] {
    Sha256::digest(passage).into()
}
