//! Searches compared with their legs.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use lkr::{
    Layer, Scope, SearchOptions, SearchRequest,
    ports::{EmbedKind, Embedder},
};
use lkr_models::SparseEncoder;
use lkr_vectors::{Collection, Filter, Query as Leg, QueryVector};

use crate::{collection::Query, local_kb::LocalKnowledgeBase, stats::Latency};

/// The number of queries that warm up the caches.
const WARM_UP_QUERIES: usize = 10;

/// The latencies of searches, and of their embedding and legs alone, for the same queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchCost {
    pub(super) queries: usize,
    pub(super) complete: Latency,
    pub(super) legs: Latency,
}

impl fmt::Display for SearchCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { complete, legs, .. } = self;
        let [p50, p99] = [complete.p50_ms / legs.p50_ms, complete.p99_ms / legs.p99_ms];
        write!(
            f,
            "{:.2} ms p50, {:.2} p99, embedding and legs alone {:.2} and {:.2}: {p50:.3} and {p99:.3} times",
            complete.p50_ms, complete.p99_ms, legs.p50_ms, legs.p99_ms
        )
    }
}

/// Runs each query in both ways, with the model of the knowledge base, alternating which comes first.
pub(super) async fn measure(local_kb: &LocalKnowledgeBase, queries: &[Query]) -> Result<SearchCost> {
    let embedder = local_kb.embedder.as_ref().context("a model")?;
    // Without a cache: some collections have a query twice.
    let searcher = local_kb.searcher(SearchOptions::default());
    for query in queries.iter().take(WARM_UP_QUERIES) {
        searcher.search(&SearchRequest::new(query.text.as_str())).await?;
        query_legs(local_kb, embedder, &query.text).await?;
    }
    let (mut complete, mut legs_alone) = (Vec::new(), Vec::new());
    for (turn, query) in queries.iter().enumerate() {
        if turn % 2 == 0 {
            legs_alone.push(query_legs(local_kb, embedder, &query.text).await?);
        }
        let started = Instant::now();
        searcher.search(&SearchRequest::new(query.text.as_str())).await?;
        complete.push(started.elapsed());
        if turn % 2 == 1 {
            legs_alone.push(query_legs(local_kb, embedder, &query.text).await?);
        }
    }
    Ok(SearchCost { queries: queries.len(), complete: Latency::of(complete), legs: Latency::of(legs_alone) })
}

/// Embeds a query and sends the vector store the legs of a layered search.
async fn query_legs(
    local_kb: &LocalKnowledgeBase,
    embedder: &Arc<dyn Embedder>,
    query: &str,
) -> Result<Duration> {
    let started = Instant::now();
    let vector = embedder.embed(EmbedKind::Query, &[query.to_owned()]).await?.pop();
    let dense = QueryVector::Dense(vector.context("the model returned no vector")?);
    let sparse = QueryVector::Sparse(SparseEncoder::default().query(query));
    let legs: Vec<Leg> = Layer::ALL
        .into_iter()
        .flat_map(|layer| [(layer, dense.clone()), (layer, sparse.clone())])
        .map(|(layer, vector)| Leg {
            collection: Collection::from(layer),
            vector,
            scope: Scope::All,
            filter: Filter::all(),
            limit: SearchOptions::default().candidates,
        })
        .collect();
    local_kb.vectors.query_batch(&legs).await?;
    Ok(started.elapsed())
}
