//! The ids and origins of a collection's points, which every hit has: reading them from memory takes a tenth of the time
//! that looking up their rows does.

use std::ops::Bound;

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::PointOrigin;
use roaring::RoaringBitmap;

use super::{GONE_SHARE, PointTable};
use crate::{
    codec::verify_checksum,
    env::Kb,
    error::InternalResult,
    vectors::{
        bitmap::{self, Field},
        keys,
        record::decode_origin,
        registry::IdCounters,
    },
};

/// Ids and origins, ordered by internal id.
#[derive(Debug, Default)]
pub(crate) struct OriginTable {
    ids: Vec<u32>,
    origins: Vec<(PointId, PointOrigin)>,
}

impl OriginTable {
    /// The point id and origin of an internal id. `None` if its row was not read or is damaged.
    pub(crate) fn get(&self, id: u32) -> Option<(PointId, PointOrigin)> {
        self.origins.get(self.ids.binary_search(&id).ok()?).copied()
    }

    fn retain(&mut self, live: &RoaringBitmap) {
        let rows = self.ids.iter().copied().zip(self.origins.iter().copied());
        (self.ids, self.origins) = rows.filter(|(id, _)| live.contains(*id)).unzip();
    }
}

impl PointTable for OriginTable {
    /// Adds the new points, and removes those that are gone if they are many.
    fn extend(
        &mut self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        from: u32,
        ids: IdCounters,
    ) -> InternalResult<bool> {
        let (first, last) = (keys::row(collection, from), keys::row(collection, ids.next));
        let range = (Bound::Included(&first[..]), Bound::Excluded(&last[..]));
        for row in kb.tables.origins.range(txn, &range)? {
            let (key, checksummed) = row?;
            if let (Some(id), Some(origin)) =
                (keys::row_id(key), verify_checksum(checksummed).and_then(decode_origin))
            {
                self.ids.push(id);
                self.origins.push(origin);
            }
        }
        let live = bitmap::read(kb, txn, collection, Field::Live)?;
        let gone = (self.ids.len() as u64).saturating_sub(live.len());
        let has_removed = gone * GONE_SHARE > self.ids.len() as u64;
        if has_removed {
            self.retain(&live);
        }
        Ok(has_removed)
    }
}
