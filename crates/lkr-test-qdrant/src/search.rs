//! Scores by Qdrant's formulas, in its precision.

use std::collections::BTreeMap;

use qdrant_client::qdrant::{Filter, QueryPoints, ScoredPoint, query::Variant, vector_input};
use tonic::Status;

use super::{Stored, StoredPoint, filter, points};

/// The score of a point; `None` if it is no hit.
type Score = Box<dyn Fn(&StoredPoint) -> Option<f32>>;

pub(super) fn answer(stored: &Stored, query: &QueryPoints) -> Result<Vec<ScoredPoint>, Status> {
    let input = match query.query.as_ref().and_then(|query| query.variant.as_ref()) {
        Some(Variant::Nearest(input)) => input.variant.as_ref(),
        other => return Err(Status::unimplemented(format!("query {other:?}"))),
    };
    let params = query.params.clone().unwrap_or_default();
    let score: Score = match (query.using.as_deref(), input) {
        (Some("dense"), Some(vector_input::Variant::Dense(vector))) => {
            if params.idf.is_some() {
                return Err(Status::invalid_argument("search param `idf` requires a sparse vector"));
            }
            let vector = points::normalized(&vector.data);
            Box::new(move |point| Some(point.dense.as_ref()?.iter().zip(&vector).map(|(a, b)| a * b).sum()))
        }
        (Some("sparse"), Some(vector_input::Variant::Sparse(vector))) => {
            let corpus = params.idf.as_ref().and_then(|idf| idf.corpus.as_ref());
            let terms: BTreeMap<u32, f32> =
                vector.indices.iter().copied().zip(vector.values.iter().copied()).collect();
            let weights = weighted(stored, terms, corpus)?;
            Box::new(move |point| sparse_dot(&weights, point.sparse.as_ref()?))
        }
        other => return Err(Status::invalid_argument(format!("vector {other:?}"))),
    };
    let all = Filter::default();
    let mut scored = Vec::new();
    for (id, point) in &stored.points {
        if filter::matches(query.filter.as_ref().unwrap_or(&all), *id, point)?
            && let Some(score) = score(point)
        {
            scored.push((score, *id, point));
        }
    }
    // Of equal scores the highest id comes first, so that the client must sort.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    scored.truncate(query.limit.unwrap_or(10) as usize);
    let scored = scored.into_iter().map(|(score, id, point)| ScoredPoint {
        id: Some(points::point_id(id)),
        payload: points::selected(&point.payload, query.with_payload.as_ref()),
        score,
        ..ScoredPoint::default()
    });
    Ok(scored.collect())
}

/// `idf · q` for each term, in the order of the sum. Counted are the points of the corpus that have a sparse vector.
fn weighted(
    stored: &Stored,
    terms: BTreeMap<u32, f32>,
    corpus: Option<&Filter>,
) -> Result<Vec<(u32, f32)>, Status> {
    let (mut total, mut holders) = (0.0_f32, BTreeMap::<u32, f32>::new());
    for (id, point) in &stored.points {
        let Some(sparse) = &point.sparse else { continue };
        let is_counted = match corpus {
            Some(corpus) => filter::matches(corpus, *id, point)?,
            None => true,
        };
        if is_counted {
            total += 1.0;
            terms
                .keys()
                .filter(|term| sparse.contains_key(term))
                .for_each(|term| *holders.entry(*term).or_default() += 1.0);
        }
    }
    let weight = |(term, weight): (u32, f32)| {
        let holders = holders.get(&term).copied().unwrap_or(0.0);
        (term, weight * ((total - holders + 0.5) / (holders + 0.5) + 1.0).ln())
    };
    let mut weights: Vec<(u32, f32)> = terms.into_iter().map(weight).collect();
    weights.sort_by_key(|(term, _)| stored.terms.get(term));
    Ok(weights)
}

fn sparse_dot(query: &[(u32, f32)], point: &BTreeMap<u32, f32>) -> Option<f32> {
    let shared = query.iter().filter_map(|(term, weight)| Some(weight * point.get(term)?));
    shared.fold(None, |sum: Option<f32>, product| Some(sum.unwrap_or(0.0) + product))
}
