//! Records by prefix, in the order of their keys.

use std::ops::Bound;

use heed::RoTxn;
use lkr_state::{Key, Record, ScanOrder};

use super::StoredRecord;
use crate::{codec::damaged, env::Kb, error::InternalResult};

/// The parameters of a scan.
pub(super) struct PrefixScan {
    pub(super) order: ScanOrder,
    pub(super) limit: usize,
    /// Whether damaged records are skipped instead of being an error.
    pub(super) skip_damaged: bool,
}

impl PrefixScan {
    /// Up to `limit` records that have not expired at `now` and whose key starts with `prefix`, after the key `after`
    /// in scan order.
    pub(super) fn run(
        &self,
        kb: &Kb,
        txn: &RoTxn,
        now: u64,
        prefix: &str,
        after: Option<&str>,
    ) -> InternalResult<Vec<(Key, Record)>> {
        let range = bounds(prefix.as_bytes(), after.map(str::as_bytes), self.order);
        let Some(range) = range else { return Ok(Vec::new()) };
        let range = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
        match self.order {
            ScanOrder::Ascending => self.collect(now, kb.tables.state.range(txn, &range)?),
            ScanOrder::Descending => self.collect(now, kb.tables.state.rev_range(txn, &range)?),
        }
    }

    fn collect<'t>(
        &self,
        now: u64,
        entries: impl Iterator<Item = heed::Result<(&'t [u8], &'t [u8])>>,
    ) -> InternalResult<Vec<(Key, Record)>> {
        let mut records = Vec::new();
        for entry in entries {
            if records.len() == self.limit {
                break;
            }
            let (key, checksummed) = entry?;
            match read(key, checksummed) {
                Ok((key, stored)) if stored.expires > now => {
                    records.push((key.to_owned(), stored.into_record()));
                }
                Ok(_) => {}
                Err(_) if self.skip_damaged => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(records)
    }
}

fn read<'t>(key: &'t [u8], checksummed: &'t [u8]) -> InternalResult<(&'t str, StoredRecord<'t>)> {
    let key = std::str::from_utf8(key).map_err(|_| damaged(|| "the key of a record".to_owned()))?;
    Ok((key, StoredRecord::decode(checksummed, key)?))
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys that begin with `prefix` and lie beyond `after`; `None` where there can be none.
fn bounds(prefix: &[u8], after: Option<&[u8]>, order: ScanOrder) -> Option<Bounds> {
    let first = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix.to_vec()) };
    let end = successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    let Some(after) = after.filter(|after| !after.is_empty()) else {
        // Nothing lies below the empty key, everything above it.
        return (after.is_none() || order == ScanOrder::Ascending).then_some((first, end));
    };
    let beyond = Bound::Excluded(after.to_vec());
    let past_all = after > prefix && !after.starts_with(prefix);
    match order {
        ScanOrder::Ascending if past_all => None,
        ScanOrder::Ascending => Some((if after < prefix { first } else { beyond }, end)),
        ScanOrder::Descending if after <= prefix => None,
        ScanOrder::Descending => Some((first, if past_all { end } else { beyond })),
    }
}

/// The smallest key above all that begin with `prefix`; `None` where there is no such key.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}
