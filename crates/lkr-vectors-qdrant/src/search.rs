//! Searches.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::try_join_all;
use lkr_domain::Scope;
use lkr_vectors::{Collection, Hit, Query, QueryVector, SPACE_TAG};
use qdrant_client::qdrant::{
    self, DenseVector, IdfParams, QuantizationSearchParams, QueryBatchPoints, QueryPoints, SearchParams,
    VectorInput, query, vector_input,
};

use crate::{
    Quantization,
    error::{Failure, InternalResult},
    filter::{self, Meaning},
    point::{self, DENSE, SPARSE},
    shared::Shared,
    token,
    write::check_dense,
};

/// Searches among this number of points are exact.
const EXACT_POINTS: f64 = 1_000.0;

/// Above this limit, the matching points are counted, and no more hits are asked for.
const MAX_UNCOUNTED_LIMIT: usize = 10_000;

/// How many hits are asked for beyond the limit: at least one, to see whether it cuts hits of equal score, and some that
/// equal it up to rounding.
const MARGIN: usize = 4;

/// How many hits with the score of the last one are compared by id, beyond the limit.
const MAX_TIES: usize = 1 << 16;

/// A query that is asked.
#[derive(Debug)]
pub(crate) struct Asked<'q> {
    /// Its position in the batch.
    at: usize,
    pub(crate) query: &'q Query,
    pub(crate) request: QueryPoints,
    limit: usize,
    pub(crate) hits: Vec<Hit>,
}

impl Shared {
    pub(crate) async fn query_batch(self: &Arc<Self>, queries: &[Query]) -> InternalResult<Vec<Vec<Hit>>> {
        let mut by_collection: BTreeMap<&Collection, Vec<Asked>> = BTreeMap::new();
        for (at, query) in queries.iter().enumerate() {
            let asked = self.prepare(at, query).await?;
            by_collection.entry(&query.collection).or_default().extend(asked);
        }
        let answers = by_collection.into_values().map(|asked| self.ask_all(asked));
        let answers = try_join_all(answers).await?;
        let mut results = vec![Vec::new(); queries.len()];
        for asked in answers.into_iter().flatten() {
            if let Some(result) = results.get_mut(asked.at) {
                *result = asked.hits;
            }
        }
        Ok(results)
    }

    /// The request of a query; `None` if it has no hits anyway.
    async fn prepare<'q>(self: &Arc<Self>, at: usize, query: &'q Query) -> InternalResult<Option<Asked<'q>>> {
        let spec = self.spec(&query.collection).await?;
        if let QueryVector::Dense(vector) = &query.vector
            && check_dense(&spec, vector).is_err()
        {
            // An alias may have been switched by another process.
            check_dense(&self.fresh_spec(&query.collection).await?, vector)?;
        }
        let scope = in_scope(&query.scope);
        let translated = filter::translate(&query.filter, scope.clone());
        self.add_indexes(&spec.collection, translated.fields);
        let (Some(filter), Some(corpus)) = (translated.filter, filter::into_filter(scope)) else {
            return Ok(None);
        };
        if query.limit == 0 || matches!(&query.vector, QueryVector::Sparse(vector) if vector.is_empty()) {
            return Ok(None);
        }
        let mut limit = query.limit;
        if limit > MAX_UNCOUNTED_LIMIT {
            let count = self.count(&query.collection, filter.clone()).await?;
            limit = limit.min(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let request = self.request(query, limit, filter, corpus);
        Ok((limit > 0).then_some(Asked { at, query, request, limit, hits: Vec::new() }))
    }

    fn request(
        &self,
        query: &Query,
        limit: usize,
        filter: qdrant::Filter,
        corpus: qdrant::Filter,
    ) -> QueryPoints {
        let (variant, using, params) = match &query.vector {
            QueryVector::Dense(vector) => {
                let vector = DenseVector { data: vector.clone() };
                (vector_input::Variant::Dense(vector), DENSE, self.dense_params(limit))
            }
            QueryVector::Sparse(vector) => {
                let params =
                    SearchParams { idf: Some(IdfParams { corpus: Some(corpus) }), ..SearchParams::default() };
                (vector_input::Variant::Sparse(point::encode_sparse(vector)), SPARSE, params)
            }
        };
        let nearest = query::Variant::Nearest(VectorInput { variant: Some(variant) });
        QueryPoints {
            collection_name: self.names.full(&query.collection),
            query: Some(qdrant::Query { variant: Some(nearest) }),
            using: Some(using.to_owned()),
            filter: Some(filter),
            params: Some(params),
            limit: Some((limit + MARGIN) as u64),
            with_payload: Some(point::origin_selector()),
            ..QueryPoints::default()
        }
    }

    fn dense_params(&self, limit: usize) -> SearchParams {
        let is_quantized = self.options.quantization != Quantization::None;
        let mut oversampling = self.options.oversampling.max(1.0);
        if self.options.quantization == Quantization::Binary {
            // Qdrant compares bits in small collections, too.
            oversampling = oversampling.max(EXACT_POINTS / limit as f64);
        }
        let quantization = QuantizationSearchParams {
            rescore: Some(true),
            oversampling: Some(oversampling),
            ..QuantizationSearchParams::default()
        };
        SearchParams {
            hnsw_ef: Some(self.options.ef_search.max(2 * limit as u64)),
            quantization: is_quantized.then_some(quantization),
            ..SearchParams::default()
        }
    }

    /// Asks the queries of one collection in one request, and those again whose limit cuts hits of equal score.
    async fn ask_all<'q>(&self, mut asked: Vec<Asked<'q>>) -> InternalResult<Vec<Asked<'q>>> {
        let mut open: Vec<usize> = (0..asked.len()).collect();
        while let Some(first) = open.first().and_then(|at| asked.get(*at)) {
            let batch = QueryBatchPoints {
                collection_name: self.names.full(&first.query.collection),
                query_points: open.iter().filter_map(|at| Some(asked.get(*at)?.request.clone())).collect(),
                read_consistency: self.read_consistency(),
                ..QueryBatchPoints::default()
            };
            let ask = || async { self.connection.points().query_batch(batch.clone()).await };
            let reply = self.connection.read(ask).await?;
            if reply.result.len() != open.len() {
                return Err(Failure::internal("Qdrant answered another number of queries"));
            }
            let mut still_open = Vec::new();
            for (at, result) in open.into_iter().zip(reply.result) {
                if let Some(asked) = asked.get_mut(at) {
                    asked.hits = result.result.iter().map(point::decode_hit).collect::<Result<_, _>>()?;
                    if asked.is_cut_amid_ties() {
                        asked.request.limit = asked.request.limit.map(|limit| limit * 4);
                        still_open.push(at);
                    }
                }
            }
            open = still_open;
        }
        if self.options.exact_sums {
            self.sum_products(&mut asked).await?;
        }
        asked.iter_mut().for_each(Asked::finish);
        Ok(asked)
    }
}

impl Asked<'_> {
    /// Whether more points may have the score of the last hit within the limit.
    fn is_cut_amid_ties(&self) -> bool {
        let requested = self.request.limit.unwrap_or(0) as usize;
        let score = |at: usize| self.hits.get(at).map(|hit| hit.score);
        self.hits.len() >= requested
            && requested <= self.limit.saturating_add(MAX_TIES)
            && score(self.limit - 1) == score(requested - 1)
    }

    fn finish(&mut self) {
        self.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        self.hits.truncate(self.limit);
    }
}

/// The points of the scope.
fn in_scope(scope: &Scope) -> Meaning {
    match scope {
        Scope::All => Meaning::All,
        Scope::Spaces(spaces) => {
            filter::any_token(spaces.iter().map(|space| token::text(SPACE_TAG, space.as_str())))
        }
    }
}
