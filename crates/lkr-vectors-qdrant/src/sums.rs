//! Sums of sparse scores that do not depend on what else is stored.
//!
//! Qdrant adds the products of a score in single precision, in the order in which a segment met their terms first. Points
//! that are outside the scope, and even deleted ones, so change the last bit of a score, and with it the order of hits. The
//! single products do not depend on them. So they are asked for once more, for the best points alone, and added here.

use std::collections::HashMap;

use lkr_domain::{PointId, SparseVector};
use lkr_vectors::{Hit, QueryVector};
use qdrant_client::qdrant::{
    self, HasIdCondition, QueryBatchPoints, QueryPoints, VectorInput, condition::ConditionOneOf, query,
    vector_input,
};

use crate::{
    error::{Failure, InternalResult},
    filter::{self, Meaning},
    point,
    search::Asked,
    shared::Shared,
};

/// The sum of two products does not depend on their order.
const MIN_TERMS: usize = 3;

/// Longer queries keep Qdrant's sums.
const MAX_TERMS: usize = 64;

/// Queries with more hits keep Qdrant's sums.
const MAX_HITS: usize = 1_000;

/// How many queries one request contains.
const MAX_QUERIES: usize = 256;

/// A query for the products of one term.
struct Product {
    /// The position of the query that it belongs to.
    asked: usize,
    request: QueryPoints,
}

impl Shared {
    /// Replaces the scores of hits by the sums of their products.
    pub(crate) async fn sum_products(&self, asked: &mut [Asked<'_>]) -> InternalResult<()> {
        let products: Vec<Product> =
            asked.iter().enumerate().flat_map(|(at, asked)| products_of(at, asked)).collect();
        let mut sums: HashMap<(usize, PointId), f64> = HashMap::new();
        for products in products.chunks(MAX_QUERIES) {
            let Some(first) = products.first() else { continue };
            let batch = QueryBatchPoints {
                collection_name: first.request.collection_name.clone(),
                query_points: products.iter().map(|product| product.request.clone()).collect(),
                read_consistency: self.read_consistency(),
                ..QueryBatchPoints::default()
            };
            let ask = || async { self.connection.points().query_batch(batch.clone()).await };
            let results = self.connection.read(ask).await?.result;
            if results.len() != products.len() {
                return Err(Failure::internal("Qdrant answered another number of queries"));
            }
            for (product, result) in products.iter().zip(results) {
                for scored in result.result {
                    let id = point::decode_id(scored.id.as_ref())?;
                    *sums.entry((product.asked, id)).or_default() += f64::from(scored.score);
                }
            }
        }
        for (at, asked) in asked.iter_mut().enumerate() {
            asked.hits.iter_mut().for_each(|hit| set_score(hit, sums.get(&(at, hit.id))));
        }
        Ok(())
    }
}

/// A point that was removed meanwhile keeps its score.
fn set_score(hit: &mut Hit, sum: Option<&f64>) {
    if let Some(sum) = sum {
        hit.score = *sum as f32 + 0.0;
    }
}

/// One query for each term, among the hits.
fn products_of(at: usize, asked: &Asked<'_>) -> Vec<Product> {
    let QueryVector::Sparse(vector) = &asked.query.vector else { return Vec::new() };
    let is_summed =
        (MIN_TERMS..=MAX_TERMS).contains(&vector.len()) && (1..=MAX_HITS).contains(&asked.hits.len());
    if !is_summed {
        return Vec::new();
    }
    let has_id = asked.hits.iter().map(|hit| point::encode_id(hit.id)).collect();
    let among_hits = Meaning::If(ConditionOneOf::HasId(HasIdCondition { has_id }));
    let filter = filter::into_filter(among_hits);
    let request = |term| QueryPoints {
        query: Some(of_term(term)),
        filter: filter.clone(),
        limit: Some(asked.hits.len() as u64),
        with_payload: None,
        ..asked.request.clone()
    };
    vector.iter().map(|term| Product { asked: at, request: request(term) }).collect()
}

fn of_term(term: (u32, f32)) -> qdrant::Query {
    let vector = point::encode_sparse(&SparseVector::from_pairs([term]));
    let nearest = VectorInput { variant: Some(vector_input::Variant::Sparse(vector)) };
    qdrant::Query { variant: Some(query::Variant::Nearest(nearest)) }
}
