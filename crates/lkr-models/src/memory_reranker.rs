use std::collections::HashSet;

use async_trait::async_trait;

use crate::{Reranker, RerankerProfile, Result, memory::words};

/// A reranker without a model: a passage is as good as the share of the query's words that it holds.
///
/// It is the same on every machine and in every version. Meant for tests and examples.
#[derive(Debug, Clone)]
pub struct MemoryReranker {
    profile: RerankerProfile,
}

impl MemoryReranker {
    /// The reranker that is shown 20 passages a search.
    #[must_use]
    pub fn new() -> Self {
        Self::of(20)
    }

    /// The reranker that is shown so many passages a search.
    #[must_use]
    pub fn of(candidates: usize) -> Self {
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
        let asked: HashSet<String> = words(query).collect();
        Ok(passages.iter().map(|passage| share(&asked, passage)).collect())
    }
}

/// The share of `asked` that `passage` holds, from 0 to 1.
fn share(asked: &HashSet<String>, passage: &str) -> f32 {
    let held: HashSet<String> = words(passage).filter(|word| asked.contains(word)).collect();
    held.len() as f32 / asked.len().max(1) as f32
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
    async fn a_score_is_the_share_of_the_words() {
        let passages = ["Ice on Europa", "the ice, the ICE", "bread", ""].map(str::to_owned);
        let scores = MemoryReranker::new().rerank("ice of Europa, ice", &passages).await.unwrap();
        assert_eq!(scores, [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
        assert_eq!(MemoryReranker::new().rerank("?!", &passages).await.unwrap(), [0.0; 4]);
    }
}
