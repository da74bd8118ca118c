//! Copies of documents with slightly different vectors, for building a large knowledge base without embedding every
//! text.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use lkr::ports::{EmbedKind, Embedder};
use lkr_models::{EmbedderProfile, Result};

use crate::{bench::random::XorShift64, collection::Input};

/// The largest noise in each dimension of a copy's vector. In 384 dimensions, the cosine with the original is about
/// .94.
const NOISE: f32 = 0.03;

/// The text before the number of a copy in its title.
const COPY_MARK: &str = " (copy ";

/// Copy `n` of a document; for 0 the document itself.
pub(super) fn copy_of(input: &Input, n: usize) -> Input {
    let Input { title, source, text } = input.clone();
    if n == 0 {
        return Input { title, source, text };
    }
    Input { title: format!("{title}{COPY_MARK}{n})"), source: format!("{source}#{n}"), text }
}

/// Embeds each passage once, and derives the vectors of its copies by adding noise. Equal texts have equal vectors.
#[derive(Debug)]
pub(super) struct CopyEmbedder {
    inner: Arc<dyn Embedder>,
    vectors: Mutex<HashMap<String, Vec<f32>>>,
}

impl CopyEmbedder {
    pub(super) fn new(inner: Arc<dyn Embedder>) -> Self {
        Self { inner, vectors: Mutex::default() }
    }

    fn cached(&self, text: &str) -> Option<Vec<f32>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
    }
}

#[async_trait]
impl Embedder for CopyEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Query {
            return self.inner.embed(kind, texts).await;
        }
        let mut uncached: Vec<String> = texts.iter().map(|text| original(text)).collect();
        uncached.sort_unstable();
        uncached.dedup();
        uncached.retain(|text| self.cached(text).is_none());
        let vectors = self.inner.embed(kind, &uncached).await?;
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).extend(uncached.into_iter().zip(vectors));
        Ok(texts
            .iter()
            .map(|text| with_noise(text, self.cached(&original(text)).unwrap_or_default()))
            .collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// The original of a copy, or the text itself. The number of a copy is at the end of the first line.
fn original(text: &str) -> String {
    let (title, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let title = title.rsplit_once(COPY_MARK).map_or(title, |(title, _)| title);
    format!("{title}{rest}")
}

/// The vector of a text, with noise if it is a copy.
fn with_noise(text: &str, vector: Vec<f32>) -> Vec<f32> {
    if original(text) == text {
        return vector;
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let mut random = XorShift64::new(hasher.finish());
    let noisy: Vec<f32> = vector.into_iter().map(|value| value + NOISE * random.around_zero()).collect();
    let length = noisy.iter().map(|value| value * value).sum::<f32>().sqrt();
    noisy.into_iter().map(|value| value / length).collect()
}

#[cfg(test)]
mod tests {
    use lkr_models::MemoryEmbedder;

    use super::*;

    #[tokio::test]
    async fn copies_have_vectors_near_their_originals() {
        let input = Input { title: "Moons".into(), source: "moons".into(), text: "Io melts.".into() };
        let (first, second) = (copy_of(&input, 1), copy_of(&input, 2));
        assert_eq!((first.title.as_str(), first.source.as_str()), ("Moons (copy 1)", "moons#1"));
        let texts = [&input, &first, &second, &first].map(|of| format!("{}\n{}", of.title, of.text));
        let embedder = CopyEmbedder::new(Arc::new(MemoryEmbedder::new()));
        let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
        let original_vectors = MemoryEmbedder::new().embed(EmbedKind::Passage, &texts[..1]).await.unwrap();
        assert_eq!(vectors[0], original_vectors[0]);
        assert_eq!(vectors[1], vectors[3]);
        assert_ne!(vectors[1], vectors[2]);
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((cosine(&vectors[1], &vectors[1]) - 1.0).abs() < 1e-5);
        assert!(cosine(&vectors[0], &vectors[1]) > 0.9, "{}", cosine(&vectors[0], &vectors[1]));
    }
}
