//! Checks the records of collections and the aliases. Without them all their data would be lost, so a damaged record
//! is derived from the others or left as it is.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use heed::RoTxn;
use lkr_vectors::Collection;

use super::super::{
    keys,
    registry::{self, CollectionEntry},
};
use crate::{
    codec::{correct_bit_flip, verify_checksum, with_checksum},
    env::Kb,
    error::InternalResult,
    verify::Finding,
};

/// The advice if a damaged record cannot be derived.
const RESTORE_BACKUP: &str = "it cannot be derived; restore a backup";

/// Checks all records of collections and aliases, and finds rows of unregistered collections. Returns the collections
/// that are readable, or will be after the repair, by number.
pub(super) fn verify(
    kb: &Kb,
    txn: &RoTxn,
    findings: &mut Vec<Finding>,
) -> InternalResult<BTreeMap<u16, CollectionEntry>> {
    let (mut by_number, damaged) = read(kb, txn, findings)?;
    let mut orphans = orphan_numbers(kb, txn, &by_number)?;
    let is_whole = damaged.is_empty();
    for name in &damaged {
        let what = format!("the record of collection {} is damaged", String::from_utf8_lossy(name));
        let derived = match (&*damaged, orphans.first(), orphans.len()) {
            ([_], Some(number), 1) => derived(name, *number, &by_number),
            _ => None,
        };
        let record = derived.as_ref().and_then(|derived| registry::encode(derived).ok());
        match derived.zip(record) {
            Some((derived, record)) => {
                findings.push(Finding::missing(what, "collections", name, &record));
                orphans.clear();
                by_number.insert(derived.number, derived);
            }
            None => findings.push(Finding::left(what, RESTORE_BACKUP)),
        }
    }
    aliases(kb, txn, findings)?;
    // If a record is damaged, orphaned rows may be those of its collection.
    for number in orphans.into_iter().filter(|_| is_whole) {
        let what = format!("rows of the unregistered collection number {number}");
        findings.push(Finding::dropped(what, number));
    }
    Ok(by_number)
}

/// Collections by their numbers.
type ByNumber = BTreeMap<u16, CollectionEntry>;

/// The readable collections by number, and the names of the others.
fn read(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<(ByNumber, Vec<Vec<u8>>)> {
    let (mut by_number, mut damaged) = (BTreeMap::new(), Vec::new());
    for row in kb.tables.collections.iter(txn)? {
        let (name, checksummed) = row?;
        let correct_bit_flip = correct_bit_flip(checksummed);
        let collection = registry::collection_name(name).zip(correct_bit_flip.as_deref());
        let read = collection.and_then(|(name, checksummed)| registry::decode(name, checksummed).ok());
        match read {
            Some(read) if !by_number.contains_key(&read.number) => {
                if let Some(Cow::Owned(whole)) = &correct_bit_flip {
                    let what = format!("the record of collection {} is damaged", read.spec.collection);
                    findings.push(Finding::flipped(what, "collections", name, whole));
                }
                by_number.insert(read.number, read);
            }
            _ => damaged.push(name.to_vec()),
        }
    }
    Ok((by_number, damaged))
}

/// Derives the record of a collection whose rows have this number. Collections for the same kind of vectors have the
/// same name after the first dot.
fn derived(name: &[u8], number: u16, by_number: &BTreeMap<u16, CollectionEntry>) -> Option<CollectionEntry> {
    let collection = registry::collection_name(name)?;
    let like =
        |by_number: &&CollectionEntry| kind(by_number.spec.collection.name()) == kind(collection.name());
    let sibling = by_number.values().find(like)?;
    let mut spec = sibling.spec.clone();
    spec.collection = collection.clone();
    Some(CollectionEntry { number, spec })
}

fn kind(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, kind)| kind)
}

/// The numbers of rows that belong neither to a registered collection nor to a dropped one.
fn orphan_numbers(
    kb: &Kb,
    txn: &RoTxn,
    by_number: &BTreeMap<u16, CollectionEntry>,
) -> InternalResult<BTreeSet<u16>> {
    let tables = &kb.tables;
    let of_points = [
        tables.counters,
        tables.ids,
        tables.origins,
        tables.bodies,
        tables.tag_sets,
        tables.dense,
        tables.postings,
        tables.bitmaps,
    ];
    let mut found = BTreeSet::new();
    for table in of_points {
        let mut next = Some(vec![0, 0]);
        while let Some(from) = next.take() {
            let Some((key, _)) = table.get_greater_than_or_equal_to(txn, &from)? else { break };
            let Some(number) = key.first_chunk::<2>().copied().map(u16::from_be_bytes) else { break };
            if !by_number.contains_key(&number)
                && tables.dropped.get(txn, &keys::collection(number))?.is_none()
            {
                found.insert(number);
            }
            next = number.checked_add(1).map(|next| keys::collection(next).to_vec());
        }
    }
    Ok(found)
}

fn aliases(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<()> {
    let names = kb.tables.collections.iter(txn)?.map(|row| Ok(row?.0.to_vec()));
    let names = names.collect::<InternalResult<Vec<_>>>()?;
    for row in kb.tables.aliases.iter(txn)? {
        let (alias, checksummed) = row?;
        let read = verify_checksum(checksummed);
        if read.is_some_and(|target| names.iter().any(|name| name == target)) {
            continue;
        }
        let what = format!("the alias {} leads to no collection", String::from_utf8_lossy(alias));
        let target = registry::collection_name(alias).and_then(|alias| target(&alias, checksummed, &names));
        findings.push(match target {
            Some(target) => Finding::missing(what, "aliases", alias, &with_checksum(target)),
            None if read.is_some() => Finding::wrong(what, "aliases", alias),
            None => Finding::left(what, RESTORE_BACKUP),
        });
    }
    Ok(())
}

/// The target of a damaged alias: the name that differs in one bit, or the only collection whose name starts with the
/// alias.
fn target<'n>(alias: &Collection, checksummed: &[u8], names: &'n [Vec<u8>]) -> Option<&'n [u8]> {
    let correct_bit_flip = correct_bit_flip(checksummed);
    let stored_target = correct_bit_flip.as_deref().and_then(verify_checksum);
    if let Some(name) = names.iter().find(|name| stored_target == Some(name)) {
        return Some(name);
    }
    let names_of_alias = format!("{alias}.");
    let mut names_of_alias = names.iter().filter(|name| name.starts_with(names_of_alias.as_bytes()));
    names_of_alias.next().filter(|_| names_of_alias.next().is_none()).map(Vec::as_slice)
}
