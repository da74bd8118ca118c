//! Dense vectors: a chunk's passage is embedded, a node has the mean of its chunks' vectors.

use std::{collections::HashMap, ops::Range};

use lkr_catalog::l1_id;
use lkr_domain::{Chunk, IndexedTitle, PointId};
use lkr_layers::indexed_chunk;
use lkr_models::{EmbedKind, Embedder};
use lkr_vectors::PointOrigin;
use tracing::{Instrument, debug_span};

use crate::{Error, ErrorKind, Result};

/// The text to embed of a chunk: title, headings and the header of its table, then its own text. See docs/studies.md#indexed-text.
pub(crate) fn passage(title: &IndexedTitle, chunk: &Chunk) -> String {
    indexed_chunk(title, chunk)
}

/// Divides the ordinals below `total` into ranges of at most `size`; one empty range if there are none.
pub(crate) fn batches(total: u32, size: usize) -> impl Iterator<Item = Range<u32>> {
    let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
    (0..total.max(1)).step_by(size as usize).map(move |from| from..from.saturating_add(size).min(total))
}

/// Embeds texts, equal ones once. Returns their vectors in order and the number of embedded texts.
pub(crate) async fn embed(
    embedder: &dyn Embedder,
    texts: impl Iterator<Item = &str>,
) -> Result<(Vec<Vec<f32>>, u64)> {
    let mut unique: Vec<String> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    let order: Vec<usize> = texts
        .map(|text| {
            *positions.entry(text).or_insert_with(|| {
                unique.push(text.to_owned());
                unique.len() - 1
            })
        })
        .collect();
    let embedding = embedder.embed(EmbedKind::Passage, &unique);
    let vectors = embedding.instrument(debug_span!("model.embed", texts = unique.len())).await?;
    if vectors.len() != unique.len() {
        let reason = format!("the model returned {} vectors for {} texts", vectors.len(), unique.len());
        return Err(Error::new(ErrorKind::Unembeddable, "embed", reason));
    }
    let ordered = order.into_iter().filter_map(|at| vectors.get(at).cloned()).collect();
    Ok((ordered, unique.len() as u64))
}

/// The vectors of nodes and documents: the mean of their chunks' vectors, scaled to length 1. The vector of a node is taken
/// out once its last chunk was added.
#[derive(Debug, Default)]
pub(crate) struct NodeMeans {
    sums: HashMap<PointId, Vec<f32>>,
}

impl NodeMeans {
    /// Adds the vector of a chunk to the means of its document and nodes.
    pub(crate) fn add(&mut self, chunk: &PointOrigin, vector: &[f32]) {
        let ancestors = [Some(l1_id(chunk.doc_id, chunk.revision)), chunk.l2, chunk.l3];
        for node in ancestors.into_iter().flatten() {
            add(self.sums.entry(node).or_insert_with(|| vec![0.0; vector.len()]), vector);
        }
    }

    /// Removes and returns the vector of a point; `None` if none of its chunks had one.
    pub(crate) fn take(&mut self, point: &PointId) -> Option<Vec<f32>> {
        self.sums.remove(point).map(normalize)
    }
}

fn add(sum: &mut [f32], vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
}

/// Scales to length 1. If the sum is zero, any unit vector will do.
fn normalize(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > f32::EPSILON {
        vector.iter_mut().for_each(|value| *value /= length);
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn batches_cover_all_ordinals_in_order(total in 0u32..500, size in 0usize..70) {
            let all: Vec<Range<u32>> = batches(total, size).collect();
            prop_assert!(all.iter().all(|batch| batch.len() <= size.max(1)));
            prop_assert_eq!(all.iter().cloned().flatten().collect::<Vec<_>>(), (0..total).collect::<Vec<_>>());
            prop_assert_eq!(all.last().map(|last| last.end), Some(total));
        }
    }

    #[test]
    fn mean_has_length_one() {
        let mut sum = vec![1.0, 0.0];
        add(&mut sum, &[0.0, 1.0]);
        let mean = normalize(sum);
        assert!((mean[0] - 0.5f32.sqrt()).abs() < 1e-6 && (mean[1] - 0.5f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn mean_of_opposite_vectors_is_a_unit_vector() {
        let mut sum = vec![1.0, 0.0];
        add(&mut sum, &[-1.0, 0.0]);
        assert_eq!(normalize(sum), [1.0, 0.0]);
    }
}
