use std::collections::HashSet;

use async_trait::async_trait;

use crate::{Reranker, RerankerProfile, Result, memory::words};

/// A reranker without a model: the score of a passage is the fraction of the query's words that it contains.
///
/// Scores are the same on every machine and in every version. For tests and examples.
#[derive(Debug, Clone)]
pub struct MemoryReranker {
    profile: RerankerProfile,
}

impl MemoryReranker {
    /// A reranker that scores 20 passages a search.
    #[must_use]
    pub fn new() -> Self {
        Self::with_candidates(20)
    }

    /// A reranker that scores `candidates` passages a search.
    #[must_use]
    pub fn with_candidates(candidates: usize) -> Self {
        let (id, name) = ("memory-words".to_owned(), "shared words".to_owned());
        Self { profile: RerankerProfile { id, name, candidates } }
    }
}

impl Default for MemoryReranker {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Reranker for MemoryReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, query: &str, passages: &[String]) -> Result<Vec<f32>> {
        let query_words: HashSet<String> = words(query).collect();
        Ok(passages.iter().map(|passage| recall(&query_words, passage)).collect())
    }
}

/// The fraction of `query_words` that `passage` contains, from 0 to 1.
fn recall(query_words: &HashSet<String>, passage: &str) -> f32 {
    let shared: HashSet<String> = words(passage).filter(|word| query_words.contains(word)).collect();
    shared.len() as f32 / query_words.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn reranker() -> (Arc<dyn Reranker>, ()) {
        (Arc::new(MemoryReranker::new()), ())
    }

    crate::reranker_suite!(reranker());

    #[tokio::test]
    async fn score_is_fraction_of_query_words_in_passage() {
        let passages = ["Ice on Europa", "the ice, the ICE", "bread", ""].map(str::to_owned);
        let scores = MemoryReranker::new().rerank("ice of Europa, ice", &passages).await.unwrap();
        assert_eq!(scores, [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
        assert_eq!(MemoryReranker::new().rerank("?!", &passages).await.unwrap(), [0.0; 4]);
    }
}
