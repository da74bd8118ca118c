use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use lkr_domain::{PointId, SparseVector};

use crate::{
    CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query, QueryVector, Result,
    ScrollCursor, Tags,
};

/// A collection: its points by id, and how many of them hold each term.
#[derive(Clone)]
pub(super) struct Stored {
    spec: CollectionSpec,
    points: BTreeMap<PointId, Point>,
    holders: HashMap<u32, u64>,
}

impl Stored {
    pub(super) fn new(spec: CollectionSpec) -> Self {
        Self { spec, points: BTreeMap::new(), holders: HashMap::new() }
    }

    pub(super) const fn spec(&self) -> &CollectionSpec {
        &self.spec
    }

    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.values()
    }

    /// Whether a dense vector fits the collection.
    pub(super) fn check(&self, vector: &[f32], operation: &'static str) -> Result<()> {
        let name = &self.spec.collection;
        let message = match &self.spec.dense {
            None => format!("{name} has no dense vectors"),
            Some(dense) if dense.dims != vector.len() => {
                format!("a vector of {} dimensions for {name}, which has {}", vector.len(), dense.dims)
            }
            Some(_) => match vector.iter().find(|value| !value.is_finite()) {
                Some(value) => format!("{value} in a dense vector"),
                None => return Ok(()),
            },
        };
        Err(Error::new(ErrorKind::Invalid, operation, message))
    }

    pub(super) fn put(&mut self, point: Point) {
        for term in point.sparse.indices() {
            *self.holders.entry(*term).or_default() += 1;
        }
        if let Some(old) = self.points.insert(point.id, point) {
            self.forget(&old.sparse);
        }
    }

    pub(super) fn delete(&mut self, filter: &Filter) -> u64 {
        let gone: Vec<Point> =
            self.points.extract_if(.., |_, point| passes(filter, point)).map(|(_, p)| p).collect();
        gone.iter().for_each(|point| self.forget(&point.sparse));
        gone.len() as u64
    }

    fn forget(&mut self, sparse: &SparseVector) {
        for term in sparse.indices() {
            if let Some(holders) = self.holders.get_mut(term) {
                *holders -= 1;
                if *holders == 0 {
                    self.holders.remove(term);
                }
            }
        }
    }

    pub(super) fn set_tags(&mut self, filter: &Filter, tags: &Tags) -> u64 {
        let passing = self.points.values_mut().filter(|point| passes(filter, point));
        passing.map(|point| point.tags.clone_from(tags)).count() as u64
    }

    pub(super) fn count(&self, filter: &Filter) -> u64 {
        self.points().filter(|point| passes(filter, point)).count() as u64
    }

    pub(super) fn get(&self, id: PointId, with: Include) -> Option<Point> {
        self.points.get(&id).map(|point| reduced(point, with))
    }

    /// Points in the order of their ids; the cursor is the last id of the page before.
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
                    Error::new(ErrorKind::Invalid, "scroll", format!("a cursor of {} bytes", bytes.len()))
                })?;
                Bound::Excluded(PointId::from_bytes(id))
            }
        };
        let mut passing =
            self.points.range((start, Bound::Unbounded)).map(|(_, p)| p).filter(|p| passes(filter, p));
        let points: Vec<Point> = passing.by_ref().take(limit).map(|point| reduced(point, with)).collect();
        let next = points
            .last()
            .filter(|_| passing.next().is_some())
            .map(|last| ScrollCursor(last.id.as_bytes().to_vec()));
        Ok(Page { points, next })
    }

    pub(super) fn query(&self, query: &Query) -> Result<Vec<Hit>> {
        let points = self.points().filter(|point| passes(&query.filter, point));
        let mut hits: Vec<Hit> = match &query.vector {
            QueryVector::Dense(vector) => {
                self.check(vector, "query_batch")?;
                let score = |point: &Point| point.dense.as_deref().map(|dense| cosine(vector, dense));
                points.filter_map(|point| Some(hit(point, score(point)?))).collect()
            }
            QueryVector::Sparse(vector) => {
                let weighted = self.weighted(vector);
                points.filter_map(|point| Some(hit(point, dot(&weighted, &point.sparse)?))).collect()
            }
        };
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(query.limit);
        Ok(hits)
    }

    /// The terms of a query that any point holds, with `idf · q`.
    fn weighted(&self, query: &SparseVector) -> Vec<(u32, f64)> {
        let points = self.points.len() as f64;
        let weight = |(term, weight): (u32, f32)| {
            let holders = *self.holders.get(&term)? as f64;
            let idf = (1.0 + (points - holders + 0.5) / (holders + 0.5)).ln();
            Some((term, idf * f64::from(weight)))
        };
        query.iter().filter_map(weight).collect()
    }
}

fn passes(filter: &Filter, point: &Point) -> bool {
    filter.matches(point.id, &point.origin, &point.tags)
}

fn reduced(point: &Point, with: Include) -> Point {
    match with {
        Include::All => point.clone(),
        Include::Payload => Point {
            id: point.id,
            origin: point.origin,
            tags: point.tags.clone(),
            dense: None,
            sparse: SparseVector::default(),
            payload: point.payload.clone(),
        },
    }
}

/// The hit of a point. Zero is added so that −0 and 0, which are equal, tie.
fn hit(point: &Point, score: f64) -> Hit {
    Hit { id: point.id, origin: point.origin, score: score as f32 + 0.0 }
}

/// The cosine of two vectors; 0 where one of them has no length.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 { dot(a, b) / length } else { 0.0 }
}

/// The sum over shared terms; `None` where there is none. Both sides are sorted by term.
fn dot(query: &[(u32, f64)], point: &SparseVector) -> Option<f64> {
    let terms = point.indices();
    let shared = query.iter().filter_map(|(term, weight)| {
        let at = terms.binary_search(term).ok()?;
        Some(weight * f64::from(*point.values().get(at)?))
    });
    shared.fold(None, |sum: Option<f64>, product| Some(sum.unwrap_or(0.0) + product))
}
