use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use lkr::{
    Layer, SPACE_DEFAULT, SearchOptions, SearchRequest,
    ports::{EmbedKind, Embedder},
};
use lkr_models::SparseEncoder;
use lkr_vectors::{Collection, Condition, Filter, Query as Leg, QueryVector};

use crate::{base::Base, collection::Query, stats::Latency};

/// How many queries run before it counts.
const WARM: usize = 10;

/// The same queries through a search, and as nothing but their embedding and their legs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searches {
    pub(super) queries: usize,
    pub(super) whole: Latency,
    pub(super) legs: Latency,
}

/// Asks each query both ways, turn by turn, now one first and now the other.
pub(super) async fn measure(
    base: &Base,
    embedder: &Arc<dyn Embedder>,
    queries: &[Query],
) -> Result<Searches> {
    for query in queries.iter().take(WARM) {
        // Asked for another number of results, so that the cache does not know it later.
        let request = SearchRequest { top_k: 9, ..SearchRequest::new(query.text.as_str()) };
        base.kb.search(&request).await?;
        legs(base, embedder, &query.text).await?;
    }
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    for (turn, query) in queries.iter().enumerate() {
        if turn % 2 == 0 {
            alone.push(legs(base, embedder, &query.text).await?);
        }
        let started = Instant::now();
        base.kb.search(&SearchRequest::new(query.text.as_str())).await?;
        whole.push(started.elapsed());
        if turn % 2 == 1 {
            alone.push(legs(base, embedder, &query.text).await?);
        }
    }
    Ok(Searches { queries: queries.len(), whole: Latency::of(whole), legs: Latency::of(alone) })
}

/// Embeds a query and asks the vector store what a layered search asks it.
async fn legs(base: &Base, embedder: &Arc<dyn Embedder>, query: &str) -> Result<Duration> {
    let started = Instant::now();
    let vector = embedder.embed(EmbedKind::Query, &[query.to_owned()]).await?.pop();
    let dense = QueryVector::Dense(vector.context("the model answered no vector")?);
    let sparse = QueryVector::Sparse(SparseEncoder::default().query(query));
    let space = Condition::Tag { key: "space".to_owned(), any: vec![SPACE_DEFAULT.to_owned()] };
    let legs: Vec<Leg> = Layer::ALL
        .into_iter()
        .flat_map(|layer| [(layer, dense.clone()), (layer, sparse.clone())])
        .map(|(layer, vector)| Leg {
            collection: Collection::from(layer),
            vector,
            filter: Filter::only(space.clone()),
            limit: SearchOptions::default().candidates,
        })
        .collect();
    base.vectors.query_batch(&legs).await?;
    Ok(started.elapsed())
}
