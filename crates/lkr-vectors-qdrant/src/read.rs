//! Reads of points.

use std::{collections::HashMap, sync::Arc};

use lkr_domain::PointId;
use lkr_vectors::{Collection, Filter, Include, Page, Point, ScrollCursor};
use qdrant_client::qdrant::{self, GetPoints, ReadConsistencyType, ScrollPoints, read_consistency};

use crate::{
    ReadConsistency,
    error::{Failure, InternalResult},
    filter::{self, Meaning, Translated},
    point,
    shared::Shared,
};

/// How many points one request returns.
const PAGE: usize = 512;

/// The first byte of a cursor; the id of the next point follows.
const CURSOR: u8 = 0x51;

impl Shared {
    pub(crate) async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> InternalResult<Vec<Option<Point>>> {
        let mut found: HashMap<PointId, Point> = HashMap::new();
        // An empty request still tells whether the collection exists.
        let mut pages = ids.chunks(PAGE);
        let mut page = pages.next().unwrap_or_default();
        loop {
            let get = GetPoints {
                collection_name: self.names.full(collection),
                ids: page.iter().copied().map(point::encode_id).collect(),
                with_payload: Some(point::payload_selector()),
                with_vectors: Some(point::vectors_selector(with)),
                read_consistency: self.read_consistency(),
                ..GetPoints::default()
            };
            let ask = || async { self.connection.points().get(get.clone()).await };
            for retrieved in self.connection.read(ask).await?.result {
                let point = point::decode(retrieved, with)?;
                found.insert(point.id, point);
            }
            match pages.next() {
                Some(next) => page = next,
                None => return Ok(ids.iter().map(|id| found.get(id).cloned()).collect()),
            }
        }
    }

    pub(crate) async fn scroll(
        self: &Arc<Self>,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> InternalResult<Page> {
        let mut next = after.map(decode_cursor).transpose()?;
        let spec = self.spec(collection).await?;
        let Translated { filter, fields } = filter::translate(filter, Meaning::All);
        self.add_indexes(&spec.collection, fields);
        let mut points = Vec::new();
        let Some(filter) = filter.filter(|_| limit > 0) else { return Ok(Page { points, next: None }) };
        loop {
            let size = PAGE.min(limit - points.len());
            let (page, following) = self.scroll_once(collection, &filter, next, size, with).await?;
            points.extend(page);
            next = following;
            if next.is_none() || points.len() >= limit {
                return Ok(Page { points, next: next.map(encode_cursor) });
            }
        }
    }

    /// A page from the id `from` on, and the id of the next point. Qdrant sorts points by id.
    pub(crate) async fn scroll_once(
        &self,
        collection: &Collection,
        filter: &qdrant::Filter,
        from: Option<PointId>,
        size: usize,
        with: Include,
    ) -> InternalResult<(Vec<Point>, Option<PointId>)> {
        let scroll = ScrollPoints {
            collection_name: self.names.full(collection),
            filter: Some(filter.clone()),
            offset: from.map(point::encode_id),
            limit: Some(u32::try_from(size).unwrap_or(u32::MAX)),
            with_payload: Some(point::payload_selector()),
            with_vectors: Some(point::vectors_selector(with)),
            read_consistency: self.read_consistency(),
            ..ScrollPoints::default()
        };
        let ask = || async { self.connection.points().scroll(scroll.clone()).await };
        let reply = self.connection.read(ask).await?;
        let points =
            reply.result.into_iter().map(|point| point::decode(point, with)).collect::<Result<_, _>>()?;
        let next = reply.next_page_offset.map(|id| point::decode_id(Some(&id))).transpose()?;
        Ok((points, next))
    }

    pub(crate) fn read_consistency(&self) -> Option<qdrant::ReadConsistency> {
        let kind = |kind: ReadConsistencyType| read_consistency::Value::Type(kind.into());
        let value = match self.options.read_consistency? {
            ReadConsistency::Factor(copies) => read_consistency::Value::Factor(copies.into()),
            ReadConsistency::Majority => kind(ReadConsistencyType::Majority),
            ReadConsistency::Quorum => kind(ReadConsistencyType::Quorum),
            ReadConsistency::All => kind(ReadConsistencyType::All),
        };
        Some(qdrant::ReadConsistency { value: Some(value) })
    }
}

fn encode_cursor(next: PointId) -> ScrollCursor {
    ScrollCursor([&[CURSOR][..], next.as_bytes()].concat())
}

fn decode_cursor(cursor: &ScrollCursor) -> InternalResult<PointId> {
    let id = cursor.0.split_first().filter(|(first, _)| **first == CURSOR).map(|(_, id)| id);
    let id = id.and_then(|id| id.try_into().ok()).map(PointId::from_bytes);
    id.ok_or_else(|| Failure::invalid(format!("malformed cursor of {} bytes", cursor.0.len())))
}
