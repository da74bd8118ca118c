use std::collections::BTreeMap;
use std::ops::Bound;

use lkr_domain::{PointId, SparseVector};

use crate::{
    CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query, QueryVector, Result,
    ScrollCursor, Tags, is_in_scope,
};

/// A collection with its points by id.
#[derive(Clone)]
pub(super) struct MemoryCollection {
    spec: CollectionSpec,
    points: BTreeMap<PointId, Point>,
}

impl MemoryCollection {
    pub(super) fn new(spec: CollectionSpec) -> Self {
        Self { spec, points: BTreeMap::new() }
    }

    pub(super) const fn spec(&self) -> &CollectionSpec {
        &self.spec
    }

    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.values()
    }

    /// Checks the dimensions and the numbers of a dense vector.
    pub(super) fn check_dense(&self, vector: &[f32], operation: &'static str) -> Result<()> {
        let name = &self.spec.collection;
        let message = match &self.spec.dense {
            None => format!("collection {name} has no dense vectors"),
            Some(dense) if dense.dims != vector.len() => {
                format!(
                    "a dense vector has {} dimensions; collection {name} has {}",
                    vector.len(),
                    dense.dims
                )
            }
            Some(_) => match vector.iter().find(|value| !value.is_finite()) {
                Some(value) => format!("a dense vector contains {value}"),
                None => return Ok(()),
            },
        };
        Err(Error::new(ErrorKind::Invalid, operation, message))
    }

    pub(super) fn put(&mut self, point: Point) {
        self.points.insert(point.id, point);
    }

    pub(super) fn delete(&mut self, filter: &Filter) -> u64 {
        self.points.extract_if(.., |_, point| matches(filter, point)).count() as u64
    }

    pub(super) fn set_tags(&mut self, filter: &Filter, tags: &Tags) -> u64 {
        let matching = self.points.values_mut().filter(|point| matches(filter, point));
        matching.map(|point| point.tags.clone_from(tags)).count() as u64
    }

    pub(super) fn count(&self, filter: &Filter) -> u64 {
        self.points().filter(|point| matches(filter, point)).count() as u64
    }

    pub(super) fn get(&self, id: PointId, with: Include) -> Option<Point> {
        self.points.get(&id).map(|point| select_parts(point, with))
    }

    /// Returns points in the order of their ids; the cursor is the last id of the previous page.
    pub(super) fn scroll(
        &self,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let start = match after {
            None => Bound::Unbounded,
            Some(ScrollCursor(bytes)) => {
                let id = bytes.as_slice().try_into().map_err(|_| {
                    Error::new(
                        ErrorKind::Invalid,
                        "scroll",
                        format!("malformed cursor of {} bytes", bytes.len()),
                    )
                })?;
                Bound::Excluded(PointId::from_bytes(id))
            }
        };
        let mut matching =
            self.points.range((start, Bound::Unbounded)).map(|(_, p)| p).filter(|p| matches(filter, p));
        let points: Vec<Point> =
            matching.by_ref().take(limit).map(|point| select_parts(point, with)).collect();
        let next = points
            .last()
            .filter(|_| matching.next().is_some())
            .map(|last| ScrollCursor(last.id.as_bytes().to_vec()));
        Ok(Page { points, next })
    }

    pub(super) fn query(&self, query: &Query) -> Result<Vec<Hit>> {
        let in_scope = || self.points().filter(|point| is_in_scope(&point.tags, &query.scope));
        let points = in_scope().filter(|point| matches(&query.filter, point));
        let mut hits: Vec<Hit> = match &query.vector {
            QueryVector::Dense(vector) => {
                self.check_dense(vector, "query_batch")?;
                let score = |point: &Point| point.dense.as_deref().map(|dense| cosine(vector, dense));
                points.filter_map(|point| Some(hit(point, score(point)?))).collect()
            }
            QueryVector::Sparse(vector) => {
                let weights = weighted_terms(vector, in_scope);
                points.filter_map(|point| Some(hit(point, sparse_dot(&weights, &point.sparse)?))).collect()
            }
        };
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(query.limit);
        Ok(hits)
    }
}

/// The terms of a query that occur in any of the points, each with `idf · q`.
fn weighted_terms<'p, I>(query: &SparseVector, points: impl Fn() -> I) -> Vec<(u32, f64)>
where
    I: Iterator<Item = &'p Point>,
{
    let total = points().count() as f64;
    let weight = |(term, weight): (u32, f32)| {
        let holders = points().filter(|point| point.sparse.indices().binary_search(&term).is_ok()).count();
        let idf = (1.0 + (total - holders as f64 + 0.5) / (holders as f64 + 0.5)).ln();
        (holders > 0).then(|| (term, idf * f64::from(weight)))
    };
    query.iter().filter_map(weight).collect()
}

fn matches(filter: &Filter, point: &Point) -> bool {
    filter.matches(point.id, &point.origin, &point.tags)
}

fn select_parts(point: &Point, with: Include) -> Point {
    match with {
        Include::All => point.clone(),
        Include::Payload => Point { tags: point.tags.clone(), ..select_parts(point, Include::Content) },
        Include::Content => Point {
            id: point.id,
            origin: point.origin,
            tags: Tags::new(),
            dense: None,
            sparse: SparseVector::default(),
            payload: point.payload.clone(),
        },
    }
}

/// Adds 0 to the score, so that −0 becomes 0 and both sort as equal.
fn hit(point: &Point, score: f64) -> Hit {
    Hit { id: point.id, origin: point.origin, score: score as f32 + 0.0 }
}

/// The cosine of two vectors; 0 if one of them has length 0.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 { dot(a, b) / length } else { 0.0 }
}

/// The sum over shared terms; `None` if no term is shared. Both sides are sorted by term.
fn sparse_dot(query: &[(u32, f64)], point: &SparseVector) -> Option<f64> {
    let terms = point.indices();
    let shared = query.iter().filter_map(|(term, weight)| {
        let index = terms.binary_search(term).ok()?;
        Some(weight * f64::from(*point.values().get(index)?))
    });
    shared.fold(None, |sum: Option<f64>, product| Some(sum.unwrap_or(0.0) + product))
}
