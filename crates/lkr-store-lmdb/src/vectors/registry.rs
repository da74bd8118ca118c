//! Collections and aliases: names, numbers, specifications.

use heed::{RoTxn, RwTxn};
use lkr_vectors::{Collection, CollectionSpec, DenseSpec};
use serde::{Deserialize, Serialize};

use super::keys;
use crate::{
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::Kb,
    error::{Failure, FailureKind, InternalResult},
};

/// The counter of collection numbers.
pub(super) const NUMBERS: &str = "collections";

/// A collection and the number that its rows begin with.
#[derive(Debug, Clone)]
pub(crate) struct CollectionEntry {
    pub(crate) number: u16,
    pub(crate) spec: CollectionSpec,
}

impl CollectionEntry {
    pub(crate) fn dims(&self) -> Option<usize> {
        self.spec.dense.as_ref().map(|dense| dense.dims)
    }
}

/// The stored form of a collection; its name is the key.
#[derive(Serialize, Deserialize)]
struct CollectionRecord {
    number: u16,
    dense: Option<DenseRecord>,
}

#[derive(Serialize, Deserialize)]
struct DenseRecord {
    model: String,
    dims: usize,
}

/// The collection with exactly this name.
fn find(kb: &Kb, txn: &RoTxn, name: &Collection) -> InternalResult<Option<CollectionEntry>> {
    let checksummed = kb.tables.collections.get(txn, name.name().as_bytes())?;
    checksummed.map(|checksummed| decode(name.clone(), checksummed)).transpose()
}

pub(super) fn decode(collection: Collection, checksummed: &[u8]) -> InternalResult<CollectionEntry> {
    let name = || format!("the record of collection {collection}");
    let record: CollectionRecord =
        serde_json::from_slice(strip_checksum(checksummed, name)?).map_err(|_| damaged(name))?;
    let dense = record.dense.map(|DenseRecord { model, dims }| DenseSpec { model, dims });
    Ok(CollectionEntry { number: record.number, spec: CollectionSpec { collection, dense } })
}

/// The collection of an alias.
fn target(kb: &Kb, txn: &RoTxn, alias: &Collection) -> InternalResult<Option<Collection>> {
    let name = || format!("the alias {alias}");
    let Some(checksummed) = kb.tables.aliases.get(txn, alias.name().as_bytes())? else { return Ok(None) };
    collection_name(strip_checksum(checksummed, name)?).map(Some).ok_or_else(|| damaged(name))
}

pub(super) fn collection_name(bytes: &[u8]) -> Option<Collection> {
    Collection::new(std::str::from_utf8(bytes).ok()?)
}

/// The collection with a name or alias.
pub(crate) fn resolve(kb: &Kb, txn: &RoTxn, name: &Collection) -> InternalResult<Option<CollectionEntry>> {
    if let Some(entry) = find(kb, txn, name)? {
        return Ok(Some(entry));
    }
    target(kb, txn, name)?.map_or(Ok(None), |target| find(kb, txn, &target))
}

/// The collection with a name or alias, which must exist.
pub(crate) fn require(kb: &Kb, txn: &RoTxn, name: &Collection) -> InternalResult<CollectionEntry> {
    resolve(kb, txn, name)?.ok_or_else(|| Failure::not_found(format!("no collection or alias {name}")))
}

/// All collections, ordered by name.
pub(crate) fn all(kb: &Kb, txn: &RoTxn) -> InternalResult<Vec<CollectionEntry>> {
    let mut entry = Vec::new();
    for row in kb.tables.collections.iter(txn)? {
        let (name, checksummed) = row?;
        let name = collection_name(name).ok_or_else(|| damaged(|| "the name of a collection".to_owned()))?;
        entry.push(decode(name, checksummed)?);
    }
    Ok(entry)
}

pub(crate) fn ensure(kb: &Kb, txn: &mut RwTxn, spec: &CollectionSpec) -> InternalResult<()> {
    let name = &spec.collection;
    if target(kb, txn, name)?.is_some() {
        return Err(Failure::conflict(format!("{name} is an alias")));
    }
    match find(kb, txn, name)? {
        Some(entry) if entry.spec == *spec => Ok(()),
        Some(_) => Err(Failure::conflict(format!("{name} exists with another specification"))),
        None => add(kb, txn, spec),
    }
}

fn add(kb: &Kb, txn: &mut RwTxn, spec: &CollectionSpec) -> InternalResult<()> {
    let number = kb.count(txn, NUMBERS)?;
    let number = u16::try_from(number).map_err(|_| {
        Failure::new(FailureKind::Internal, "all 65,535 numbers of collections have been used")
    })?;
    let record = encode(&CollectionEntry { number, spec: spec.clone() })?;
    Ok(kb.tables.collections.put(txn, spec.collection.name().as_bytes(), &record)?)
}

/// The record of a collection.
pub(super) fn encode(CollectionEntry { number, spec }: &CollectionEntry) -> InternalResult<Vec<u8>> {
    let dense = spec.dense.as_ref();
    let dense = dense.map(|DenseSpec { model, dims }| DenseRecord { model: model.clone(), dims: *dims });
    let record =
        serde_json::to_vec(&CollectionRecord { number: *number, dense }).map_err(Failure::internal)?;
    Ok(with_checksum(&record))
}

/// Sets the target of each alias, after all targets were checked.
pub(crate) fn switch(kb: &Kb, txn: &mut RwTxn, aliases: &[(Collection, Collection)]) -> InternalResult<()> {
    let mut resolved = Vec::with_capacity(aliases.len());
    for (alias, to) in aliases {
        if find(kb, txn, alias)?.is_some() {
            return Err(Failure::conflict(format!("{alias} is a collection")));
        }
        resolved.push((alias, require(kb, txn, to)?.spec.collection));
    }
    for (alias, to) in resolved {
        kb.tables.aliases.put(txn, alias.name().as_bytes(), &with_checksum(to.name().as_bytes()))?;
    }
    Ok(())
}

/// Removes a collection and its aliases from the registry, and returns its number. Its rows are no longer reachable and
/// are removed in the background.
pub(crate) fn remove(kb: &Kb, txn: &mut RwTxn, name: &Collection) -> InternalResult<Option<u16>> {
    let Some(entry) = resolve(kb, txn, name)? else { return Ok(None) };
    let collection = entry.spec.collection;
    let mut aliases = Vec::new();
    for row in kb.tables.aliases.iter(txn)? {
        let (alias, checksummed) = row?;
        if strip_checksum(checksummed, || "an alias".to_owned())? == collection.name().as_bytes() {
            aliases.push(alias.to_vec());
        }
    }
    for alias in aliases {
        kb.tables.aliases.delete(txn, &alias)?;
    }
    kb.tables.collections.delete(txn, collection.name().as_bytes())?;
    kb.tables.dropped.put(txn, &keys::collection(entry.number), &[])?;
    Ok(Some(entry.number))
}

/// Whether rows of dropped collections remain.
pub(crate) fn any_dropped(kb: &Kb, txn: &RoTxn) -> InternalResult<bool> {
    Ok(!kb.tables.dropped.is_empty(txn)?)
}

/// Removes up to `limit` rows of a dropped collection.
pub(crate) fn purge_dropped(kb: &Kb, txn: &mut RwTxn, limit: usize) -> InternalResult<()> {
    let Some((number, _)) = kb.tables.dropped.first(txn)? else { return Ok(()) };
    let number = number.to_vec();
    let tables = &kb.tables;
    let mut left = limit;
    for table in [
        tables.postings,
        tables.bitmaps,
        tables.dense,
        tables.bodies,
        tables.tag_sets,
        tables.origins,
        tables.ids,
        tables.counters,
    ] {
        let mut rows = Vec::new();
        for row in table.prefix_iter(txn, &number)?.take(left) {
            rows.push(row?.0.to_vec());
        }
        for row in &rows {
            table.delete(txn, row)?;
        }
        left -= rows.len();
    }
    if left > 0 {
        kb.tables.dropped.delete(txn, &number)?;
    }
    Ok(())
}

/// The counters of the internal ids of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IdCounters {
    /// The id of the next point.
    pub(crate) next: u32,
    /// Posting lists contain the points below this id only.
    pub(crate) posted: u32,
    /// The bytes of the bodies of pending points when they were added. It still counts those that were removed since,
    /// so that points may be posted earlier.
    pub(crate) pending_bytes: u64,
}

pub(crate) fn ids(kb: &Kb, txn: &RoTxn, number: u16) -> InternalResult<IdCounters> {
    let name = || format!("the ids of collection number {number}");
    let Some(checksummed) = kb.tables.counters.get(txn, &keys::collection(number))? else {
        return Ok(IdCounters::default());
    };
    let mut fields = FieldReader(strip_checksum(checksummed, name)?);
    let mut read =
        || Some(IdCounters { next: fields.u32()?, posted: fields.u32()?, pending_bytes: fields.u64()? });
    read().ok_or_else(|| damaged(name))
}

pub(crate) fn set_ids(kb: &Kb, txn: &mut RwTxn, number: u16, ids: IdCounters) -> InternalResult<()> {
    Ok(kb.tables.counters.put(txn, &keys::collection(number), &encode_ids(ids))?)
}

pub(super) fn encode_ids(IdCounters { next, posted, pending_bytes }: IdCounters) -> Vec<u8> {
    with_checksum(&[&next.to_le_bytes()[..], &posted.to_le_bytes(), &pending_bytes.to_le_bytes()].concat())
}

/// The internal id of the next point of a collection.
pub(crate) fn next_id(kb: &Kb, txn: &RoTxn, number: u16) -> InternalResult<u32> {
    Ok(ids(kb, txn, number)?.next)
}
