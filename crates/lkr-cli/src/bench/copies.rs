//! Many documents from few: copies whose vectors lie a little beside, so that a large knowledge base is made without
//! embedding every text of it.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use lkr::ports::{EmbedKind, Embedder};
use lkr_models::{EmbedderProfile, Result};

use crate::{bench::random::XorShift64, collection::Input};

/// How far a copy's vector lies from the text's own: the noise in each dimension is at most this, so that the cosine of
/// the two is about .94 in 384 dimensions.
const NOISE: f32 = 0.03;

/// What stands before the number of a copy in its title.
const MARK: &str = " (copy ";

/// Copy `n` of a document; the document itself for 0.
pub(super) fn copy_of(input: &Input, n: usize) -> Input {
    let Input { title, source, text } = input.clone();
    if n == 0 {
        return Input { title, source, text };
    }
    Input { title: format!("{title}{MARK}{n})"), source: format!("{source}#{n}"), text }
}

/// Embeds each passage once, and answers for its copies what lies beside. Equal texts have equal vectors.
#[derive(Debug)]
pub(super) struct CopyEmbedder {
    inner: Arc<dyn Embedder>,
    known: Mutex<HashMap<String, Vec<f32>>>,
}

impl CopyEmbedder {
    pub(super) fn new(inner: Arc<dyn Embedder>) -> Self {
        Self { inner, known: Mutex::default() }
    }

    fn known(&self, text: &str) -> Option<Vec<f32>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
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
        let mut new: Vec<String> = texts.iter().map(|text| original(text)).collect();
        new.sort_unstable();
        new.dedup();
        new.retain(|text| self.known(text).is_none());
        let vectors = self.inner.embed(kind, &new).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(new.into_iter().zip(vectors));
        Ok(texts.iter().map(|text| beside(text, self.known(&original(text)).unwrap_or_default())).collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// The text that one is a copy of, itself where it is none: the number of a copy ends the first line.
fn original(text: &str) -> String {
    let (title, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let title = title.rsplit_once(MARK).map_or(title, |(title, _)| title);
    format!("{title}{rest}")
}

/// The vector of a copy.
fn beside(text: &str, vector: Vec<f32>) -> Vec<f32> {
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
    async fn copies_lie_beside_their_texts() {
        let input = Input { title: "Moons".into(), source: "moons".into(), text: "Io melts.".into() };
        let (first, second) = (copy_of(&input, 1), copy_of(&input, 2));
        assert_eq!((first.title.as_str(), first.source.as_str()), ("Moons (copy 1)", "moons#1"));
        let texts = [&input, &first, &second, &first].map(|of| format!("{}\n{}", of.title, of.text));
        let embedder = CopyEmbedder::new(Arc::new(MemoryEmbedder::new()));
        let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
        let own = MemoryEmbedder::new().embed(EmbedKind::Passage, &texts[..1]).await.unwrap();
        assert_eq!(vectors[0], own[0]);
        assert_eq!(vectors[1], vectors[3]);
        assert_ne!(vectors[1], vectors[2]);
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((cosine(&vectors[1], &vectors[1]) - 1.0).abs() < 1e-5);
        assert!(cosine(&vectors[0], &vectors[1]) > 0.9, "{}", cosine(&vectors[0], &vectors[1]));
    }
}
