//! Dense vectors of a document: chunks are embedded, nodes have the mean of their chunks'.

use std::collections::HashMap;

use lkr_catalog::l1_id;
use lkr_domain::{Chunk, PointId};
use lkr_layers::indexed_text;
use lkr_models::{EmbedKind, Embedder};
use lkr_vectors::Origin;

use crate::Result;

/// What is embedded for a chunk: title and headings stand before the text.
pub(crate) fn passage(title: &str, chunk: &Chunk) -> String {
    indexed_text(title, &chunk.path, &chunk.text)
}

/// Embeds texts, equal ones once, and answers their vectors in order and how many were embedded.
pub(crate) async fn embed(embedder: &dyn Embedder, texts: &[String]) -> Result<(Vec<Vec<f32>>, u64)> {
    let mut unique: Vec<String> = Vec::with_capacity(texts.len());
    let mut places: HashMap<&str, usize> = HashMap::new();
    let wanted: Vec<usize> = texts
        .iter()
        .map(|text| {
            *places.entry(text).or_insert_with(|| {
                unique.push(text.clone());
                unique.len() - 1
            })
        })
        .collect();
    let vectors = embedder.embed(EmbedKind::Passage, &unique).await?;
    let ordered = wanted.into_iter().filter_map(|place| vectors.get(place).cloned()).collect();
    Ok((ordered, unique.len() as u64))
}

/// The vectors of the points above chunks: the mean of their chunks' vectors, scaled to length 1, because what a
/// node is about is what its chunks are about. Each chunk comes with the vector it has.
pub(crate) fn means_above<'a>(
    chunks: impl Iterator<Item = (&'a Origin, Option<&'a Vec<f32>>)>,
) -> HashMap<PointId, Vec<f32>> {
    let mut sums: HashMap<PointId, Vec<f32>> = HashMap::new();
    for (origin, vector) in chunks {
        let Some(vector) = vector else { continue };
        let above = [Some(l1_id(origin.doc_id, origin.revision)), origin.l2, origin.l3];
        for node in above.into_iter().flatten() {
            add(sums.entry(node).or_insert_with(|| vec![0.0; vector.len()]), vector);
        }
    }
    sums.into_iter().map(|(node, sum)| (node, normalise(sum))).collect()
}

fn add(sum: &mut [f32], vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
}

/// Scales to length 1; where vectors cancel each other out, any direction is as good.
fn normalise(mut vector: Vec<f32>) -> Vec<f32> {
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
    use super::*;

    #[test]
    fn means_have_length_one() {
        let mut sum = vec![1.0, 0.0];
        add(&mut sum, &[0.0, 1.0]);
        let mean = normalise(sum);
        assert!((mean[0] - 0.5f32.sqrt()).abs() < 1e-6 && (mean[1] - 0.5f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn opposites_still_make_a_unit_vector() {
        let mut sum = vec![1.0, 0.0];
        add(&mut sum, &[-1.0, 0.0]);
        assert_eq!(normalise(sum), [1.0, 0.0]);
    }
}
