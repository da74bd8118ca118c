//! A second model without a second model file: rotated vectors of the first keep their cosines among each other, and
//! have none with the original ones.

use std::sync::Arc;

use async_trait::async_trait;
use lkr::ports::{EmbedKind, Embedder};
use lkr_models::{EmbedderProfile, Result};

/// An embedder with another id, whose vectors are rotated by one dimension.
#[derive(Debug)]
pub(super) struct RotatedEmbedder {
    inner: Arc<dyn Embedder>,
    profile: EmbedderProfile,
}

impl RotatedEmbedder {
    pub(super) fn new(inner: Arc<dyn Embedder>) -> Self {
        let original = inner.profile().clone();
        let profile = EmbedderProfile {
            id: format!("{}-rotated", original.id),
            name: format!("{}, rotated", original.name),
            ..original
        };
        Self { inner, profile }
    }
}

#[async_trait]
impl Embedder for RotatedEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = self.inner.embed(kind, texts).await?;
        vectors.iter_mut().filter(|vector| !vector.is_empty()).for_each(|vector| vector.rotate_right(1));
        Ok(vectors)
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[cfg(test)]
mod tests {
    use lkr_models::MemoryEmbedder;

    use super::*;

    #[tokio::test]
    async fn rotated_vectors_keep_cosines_among_each_other_only() {
        let original = Arc::new(MemoryEmbedder::new());
        let rotated = RotatedEmbedder::new(original.clone());
        assert_ne!(rotated.profile().id, original.profile().id);
        let texts = ["ice on Europa".to_owned(), "Europa hides ice".to_owned()];
        let (a, b) = (
            original.embed(EmbedKind::Passage, &texts).await.unwrap(),
            rotated.embed(EmbedKind::Passage, &texts).await.unwrap(),
        );
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((cosine(&a[0], &a[1]) - cosine(&b[0], &b[1])).abs() < 1e-5);
        assert!(cosine(&a[0], &a[1]) > 0.4 && cosine(&a[0], &b[0]).abs() < 0.4);
    }
}
