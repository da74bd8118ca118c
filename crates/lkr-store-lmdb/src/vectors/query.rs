//! One query on one snapshot.

use std::iter;

use heed::RoTxn;
use lkr_vectors::{Hit, Query, QueryVector};

use super::{
    cache::OriginTable,
    dense::{self, DenseQuery},
    filter, registry,
    rows::origin,
    scope::PointScope,
    sparse,
    write::check_dims,
};
use crate::{
    error::{Failure, InternalResult},
    shared::StoreShared,
};

/// Runs a query.
pub(super) fn run_query(shared: &StoreShared, txn: &RoTxn, query: &Query) -> InternalResult<Vec<Hit>> {
    let kb = &shared.kb;
    let entry = registry::require(kb, txn, &query.collection)?;
    if let QueryVector::Dense(vector) = &query.vector {
        check_dims(&entry, vector.len())?;
        if let Some(value) = vector.iter().find(|value| !value.is_finite()) {
            return Err(Failure::invalid(format!("{value} in a dense vector")));
        }
    }
    let scope = PointScope::read(kb, txn, entry.number, &query.scope)?;
    let filtered = filter::selected(kb, txn, entry.number, &query.filter)?;
    let selected = filtered.map(|filtered| filtered & scope.ids());
    let selected = selected.as_ref().or(scope.restriction());
    let best = match &query.vector {
        QueryVector::Sparse(vector) => {
            let collection = (entry.number, &shared.caches.pending);
            sparse::search(kb, txn, collection, vector, (&scope, selected), query.limit)?
        }
        QueryVector::Dense(vector) => {
            let points = selected.unwrap_or(scope.ids());
            let (collection, total, limit) = (entry.number, scope.total(), query.limit);
            let query = DenseQuery { collection, vector, points, total, limit };
            dense::search(kb, txn, (&shared.clusters, &shared.caches.codes), &query)?
        }
    };
    hits(shared, txn, (entry.number, scope.total()), best, query.limit)
}

/// The hits in a collection of `total` points, highest score first, ties by id.
fn hits(
    shared: &StoreShared,
    txn: &RoTxn,
    (collection, total): (u16, u64),
    best: Vec<(f32, u32)>,
    limit: usize,
) -> InternalResult<Vec<Hit>> {
    let (kb, origins) = (&shared.kb, &shared.caches.origins);
    let known = if total <= shared.options.origins_below {
        // Those of a point that the table does not have are read below.
        let all = |table: &OriginTable, _, _| best.iter().map(|(_, id)| table.get(*id)).collect::<Vec<_>>();
        origins.read(kb, txn, collection, OriginTable::default, all)?
    } else {
        origins.forget(collection);
        Vec::new()
    };
    let known = known.into_iter().chain(iter::repeat(None));
    let hit = |((score, id), known): ((f32, u32), Option<_>)| {
        let (id, origin) = known.map_or_else(|| origin(kb, txn, collection, id), Ok)?;
        Ok(Hit { id, origin, score })
    };
    let mut hits = best.into_iter().zip(known).map(hit).collect::<InternalResult<Vec<_>>>()?;
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    hits.truncate(limit);
    Ok(hits)
}
