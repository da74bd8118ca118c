//! An embedding model that fails on demand.

use async_trait::async_trait;
use lkr::ports::{
    Embedder,
    models::{EmbedKind, EmbedderProfile, Error, ErrorKind, MemoryEmbedder, Result},
};

/// The word that makes a text fail.
pub(crate) const REFUSED_WORD: &str = "unembeddable";

/// Refuses passages that contain [`REFUSED_WORD`], so that their tasks fail.
#[derive(Debug, Default)]
pub(crate) struct RefusingEmbedder(MemoryEmbedder);

#[async_trait]
impl Embedder for RefusingEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.0.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Passage && texts.iter().any(|text| text.contains(REFUSED_WORD)) {
            return Err(Error::new(ErrorKind::Input, "embed", "the text has a refused word"));
        }
        self.0.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.0.letters_per_piece(text)
    }
}
