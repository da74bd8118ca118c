//! Writes of points. Each waits until it is applied, and one with an unknown outcome is sent again: all are idempotent.

use std::{collections::HashMap, time::Duration};

use lkr_domain::PointId;
use lkr_vectors::{Collection, CollectionSpec, ErrorKind, Filter, Point, Tags};
use prost::Message as _;
use qdrant_client::qdrant::{
    self, CountPoints, DeletePoints, PointStruct, PointsOperationResponse, PointsSelector, SetPayloadPoints,
    UpdateStatus, UpsertPoints, WriteOrdering, WriteOrderingType, points_selector::PointsSelectorOneOf,
};
use tokio::time::{Instant, sleep};
use tonic::{Response, Status};

use crate::{
    error::{Delivery, Failure, InternalResult},
    filter::{self, Meaning},
    point,
    shared::Shared,
    tag_fields,
    value::Fields,
};

const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// Writes of one shard are applied in the same order by all of its copies.
pub(crate) const fn strong() -> Option<WriteOrdering> {
    Some(WriteOrdering { r#type: WriteOrderingType::Strong as i32 })
}

impl Shared {
    /// Stores points that are valid, in as few requests as their size allows.
    pub(crate) async fn upsert(
        &self,
        collection: &Collection,
        points: Vec<PointStruct>,
    ) -> InternalResult<()> {
        for points in split(points, self.options.max_request_bytes) {
            let upsert = UpsertPoints {
                collection_name: self.names.full(collection),
                wait: Some(true),
                points,
                ordering: strong(),
                timeout: Some(self.write_timeout_seconds()),
                ..UpsertPoints::default()
            };
            let ask = || async { self.connection.points().upsert(upsert.clone()).await };
            self.write_points(ask).await?;
        }
        Ok(())
    }

    /// Removes the points that match. The caller holds the writes, so that the number is exact.
    pub(crate) async fn delete(&self, collection: &Collection, filter: &Filter) -> InternalResult<u64> {
        let Some(filter) = filter::translate(filter, Meaning::All).filter else { return Ok(0) };
        let count = self.count(collection, filter.clone()).await?;
        if count == 0 {
            return Ok(0);
        }
        let delete = DeletePoints {
            collection_name: self.names.full(collection),
            wait: Some(true),
            points: Some(select(filter)),
            ordering: strong(),
            timeout: Some(self.write_timeout_seconds()),
            ..DeletePoints::default()
        };
        let ask = || async { self.connection.points().delete(delete.clone()).await };
        self.write_points(ask).await.map(|()| count)
    }

    /// Replaces the tags of the points that match. The caller holds the writes, so that the number is exact.
    pub(crate) async fn set_tags(
        &self,
        collection: &Collection,
        filter: &Filter,
        tags: &Tags,
    ) -> InternalResult<u64> {
        let Some(filter) = filter::translate(filter, Meaning::All).filter else { return Ok(0) };
        let count = self.count(collection, filter.clone()).await?;
        if count == 0 {
            return Ok(0);
        }
        let set = SetPayloadPoints {
            collection_name: self.names.full(collection),
            wait: Some(true),
            payload: tag_fields::encode(tags),
            points_selector: Some(select(filter)),
            ordering: strong(),
            timeout: Some(self.write_timeout_seconds()),
            ..SetPayloadPoints::default()
        };
        // The first attempt may have changed what the filter selects. Then it changed all of it, and the second one
        // finds nothing to do.
        let ask = || async { self.connection.points().set_payload(set.clone()).await };
        self.write_points(ask).await.map(|()| count)
    }

    pub(crate) async fn count(&self, collection: &Collection, filter: qdrant::Filter) -> InternalResult<u64> {
        let count = CountPoints {
            collection_name: self.names.full(collection),
            filter: Some(filter),
            exact: Some(true),
            read_consistency: self.read_consistency(),
            ..CountPoints::default()
        };
        let ask = || async { self.connection.points().count(count.clone()).await };
        let reply = self.connection.read(ask).await?;
        reply
            .result
            .map(|result| result.count)
            .ok_or_else(|| Failure::internal("Qdrant answered without a count"))
    }

    pub(crate) async fn write_points<F>(&self, ask: impl Fn() -> F) -> InternalResult<()>
    where
        F: Future<Output = Result<Response<PointsOperationResponse>, Status>>,
    {
        let is_applied = |reply: &PointsOperationResponse| {
            reply.result.as_ref().is_some_and(|result| result.status() == UpdateStatus::Completed)
        };
        self.write(ask, is_applied).await.map(drop)
    }

    /// Sends a write until it is applied or refused, or the time for that is over.
    pub(crate) async fn write<T, F>(
        &self,
        ask: impl Fn() -> F,
        is_applied: impl Fn(&T) -> bool,
    ) -> InternalResult<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let connection = &self.connection;
        let (start, mut delay, mut is_unknown) = (Instant::now(), FIRST_DELAY, false);
        loop {
            let failure = match connection.attempt(connection.write_timeout, ask()).await {
                Ok(reply) if is_applied(&reply) => return Ok(reply),
                Ok(_) => Failure::unavailable(
                    Delivery::TimedOut,
                    "Qdrant accepted a write and did not apply it in time",
                ),
                Err(failure) if failure.kind == ErrorKind::Unavailable => failure,
                Err(failure) => return Err(failure),
            };
            is_unknown |= failure.delivery != Delivery::NotSent;
            if !is_unknown || start.elapsed() + delay >= connection.write_retry_for {
                return Err(failure);
            }
            tracing::debug!(
                reason = failure.message,
                "a write is sent again, because its outcome is unknown"
            );
            sleep(delay).await;
            delay = (2 * delay).min(MAX_DELAY);
        }
    }

    /// What the server is told about the time that a write may take.
    pub(crate) fn write_timeout_seconds(&self) -> u64 {
        self.options.write_timeout.as_secs().max(1)
    }
}

/// Points in Qdrant's form: of equal ids the last.
pub(crate) fn encode(points: &[Point]) -> Vec<PointStruct> {
    let last: HashMap<PointId, usize> = points.iter().enumerate().map(|(at, point)| (point.id, at)).collect();
    let mut shared: Option<(&Tags, Fields)> = None;
    let kept = points.iter().enumerate().filter(|(at, point)| last.get(&point.id) == Some(at));
    kept.map(|(_, point)| {
        // The points of a document share their tags.
        let tags = match shared.take() {
            Some((tags, fields)) if tags.is_shared_with(&point.tags) => fields,
            _ => tag_fields::encode(&point.tags),
        };
        let encoded = point::encode(point, tags.clone());
        shared = Some((&point.tags, tags));
        encoded
    })
    .collect()
}

/// # Errors
/// `Invalid` if a dense vector does not fit the collection.
pub(crate) fn check_dense(spec: &CollectionSpec, vector: &[f32]) -> InternalResult<()> {
    let name = &spec.collection;
    let message = match &spec.dense {
        None => format!("collection {name} has no dense vectors"),
        Some(dense) if dense.dims != vector.len() => {
            format!("a dense vector has {} dimensions; collection {name} has {}", vector.len(), dense.dims)
        }
        Some(_) => match vector.iter().find(|value| !value.is_finite()) {
            Some(value) => format!("a dense vector contains {value}"),
            None => return Ok(()),
        },
    };
    Err(Failure::invalid(message))
}

fn select(filter: qdrant::Filter) -> PointsSelector {
    PointsSelector { points_selector_one_of: Some(PointsSelectorOneOf::Filter(filter)) }
}

/// Parts of at most `max_bytes` each, if no single point is larger.
fn split(points: Vec<PointStruct>, max_bytes: usize) -> Vec<Vec<PointStruct>> {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for point in points {
        let length = point.encoded_len() + 8;
        if !part.is_empty() && bytes + length > max_bytes {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += length;
        part.push(point);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}
