//! A custom reranker, and a source that chooses one for each search.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lkr::{
    KnowledgeBase, NewDocument, SearchRequest,
    ports::{Reranker, RerankerProfile, RerankerSource},
};
use lkr_models::Result;

/// Ranks passages by their length: the longest first with sign 1, the shortest first with sign -1.
#[derive(Debug)]
struct LengthReranker {
    profile: RerankerProfile,
    sign: f32,
}

fn length_reranker(name: &str, sign: f32) -> Arc<dyn Reranker> {
    let profile = RerankerProfile { id: name.to_owned(), name: name.to_owned(), candidates: 10 };
    Arc::new(LengthReranker { profile, sign })
}

#[async_trait]
impl Reranker for LengthReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, _: &str, passages: &[String]) -> Result<Vec<f32>> {
        Ok(passages.iter().map(|passage| self.sign * passage.len() as f32).collect())
    }
}

#[derive(Debug, Default)]
struct SwitchableSource(Mutex<Option<Arc<dyn Reranker>>>);

#[async_trait]
impl RerankerSource for SwitchableSource {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

async fn best_title(kb: &KnowledgeBase) -> String {
    let found = kb.search(&SearchRequest::new("whales")).await.unwrap();
    found.response.results[0].title.clone()
}

#[tokio::test]
async fn reranker_source_takes_precedence_over_the_fixed_reranker() {
    let source = Arc::new(SwitchableSource::default());
    let builder = KnowledgeBase::builder().reranker(length_reranker("long", 1.0));
    let kb = builder.reranker_source(Arc::<SwitchableSource>::clone(&source)).build().await.unwrap();
    for (title, text) in
        [("short", "Whales."), ("long", "Whales and ships and ports."), ("mid", "Whales, ships.")]
    {
        kb.add(NewDocument { title: title.into(), text: text.into(), ..NewDocument::default() })
            .await
            .unwrap();
    }
    assert_eq!(kb.reranker().unwrap().profile().name, "long");
    assert_eq!(best_title(&kb).await, "long");
    *source.0.lock().unwrap() = Some(length_reranker("short", -1.0));
    assert_eq!(best_title(&kb).await, "short");
    *source.0.lock().unwrap() = None;
    assert_eq!(best_title(&kb).await, "long");
    kb.close().await;
}
