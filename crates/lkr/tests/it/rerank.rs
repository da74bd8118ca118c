//! A reranker of one's own, and one that is named anew at each search.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lkr::{
    KnowledgeBase, NewDocument, SearchRequest,
    ports::{Reranker, RerankerProfile, RerankerSource},
};
use lkr_models::Result;

/// Finds the longest passage the best, or the shortest.
#[derive(Debug)]
struct ByLength {
    profile: RerankerProfile,
    sign: f32,
}

fn by_length(name: &str, sign: f32) -> Arc<dyn Reranker> {
    let profile = RerankerProfile { id: name.to_owned(), name: name.to_owned(), candidates: 10 };
    Arc::new(ByLength { profile, sign })
}

#[async_trait]
impl Reranker for ByLength {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, _: &str, passages: &[String]) -> Result<Vec<f32>> {
        Ok(passages.iter().map(|passage| self.sign * passage.len() as f32).collect())
    }
}

#[derive(Debug, Default)]
struct Named(Mutex<Option<Arc<dyn Reranker>>>);

#[async_trait]
impl RerankerSource for Named {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

async fn best(kb: &KnowledgeBase) -> String {
    let found = kb.search(&SearchRequest::new("whales")).await.unwrap();
    found.response.results[0].title.clone()
}

#[tokio::test]
async fn what_is_named_stands_above_what_was_given() {
    let named = Arc::new(Named::default());
    let builder = KnowledgeBase::builder().reranker(by_length("long", 1.0));
    let kb = builder.reranker_source(Arc::<Named>::clone(&named)).build().await.unwrap();
    for (title, text) in
        [("short", "Whales."), ("long", "Whales and ships and ports."), ("mid", "Whales, ships.")]
    {
        kb.add(NewDocument { title: title.into(), text: text.into(), ..NewDocument::default() })
            .await
            .unwrap();
    }
    assert_eq!(kb.reranker().unwrap().profile().name, "long");
    assert_eq!(best(&kb).await, "long");
    *named.0.lock().unwrap() = Some(by_length("short", -1.0));
    assert_eq!(best(&kb).await, "short");
    *named.0.lock().unwrap() = None;
    assert_eq!(best(&kb).await, "long");
    kb.close().await;
}
