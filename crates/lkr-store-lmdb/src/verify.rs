//! Findings in the rows of `kb`, and their repairs.

use heed::{RoTxn, RwTxn};

use crate::{
    codec::{verify_checksum, with_checksum},
    env::{self, Kb, Table},
    error::{Failure, InternalResult},
    queue, state,
    vectors::{self, keys},
};

/// A damaged or inconsistent part of a store.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What is wrong, naming table and key, or the point.
    pub what: String,
    /// What the repair does.
    pub remedy: &'static str,
    pub(crate) repair: Repair,
}

/// The repair of a finding.
#[derive(Debug, Clone)]
pub(crate) enum Repair {
    /// Copy the readable rows to a new file.
    Salvage,
    /// Remove rows that are unreadable, or that contradict the rows they are derived from (`is_copy`).
    Remove { check_rows: Vec<(&'static str, Vec<u8>)>, is_copy: bool },
    /// Write the value that follows from other rows.
    Put { table: &'static str, key: Vec<u8>, value: Vec<u8> },
    /// Rebuild the posting lists and bitmaps of a collection from its points.
    Indexes { collection: u16 },
    /// Remove the rows of an unregistered collection in the background.
    Drop { collection: u16 },
    /// Leave everything as it is.
    Nothing,
}

impl Finding {
    pub(crate) fn salvage(what: String) -> Self {
        Self { what, remedy: "the readable rows are copied to a new file", repair: Repair::Salvage }
    }

    /// A row that cannot be read.
    pub(crate) fn unreadable(what: String, table: &'static str, key: &[u8]) -> Self {
        Self::unreadable_rows(what, vec![(table, key.to_vec())])
    }

    /// An unreadable row, with the rows that are useless without it.
    pub(crate) const fn unreadable_rows(what: String, check_rows: Vec<(&'static str, Vec<u8>)>) -> Self {
        let repair = Repair::Remove { check_rows, is_copy: false };
        Self { what, remedy: "it is moved aside", repair }
    }

    /// A derived row that contradicts its source.
    pub(crate) fn wrong(what: String, table: &'static str, key: &[u8]) -> Self {
        let repair = Repair::Remove { check_rows: vec![(table, key.to_vec())], is_copy: true };
        Self { what, remedy: "it is removed", repair }
    }

    pub(crate) fn missing(what: String, table: &'static str, key: &[u8], value: &[u8]) -> Self {
        let repair = Repair::Put { table, key: key.to_vec(), value: value.to_vec() };
        Self { what, remedy: "it is written", repair }
    }

    /// A row with one flipped bit, and its original value.
    pub(crate) fn flipped(what: String, table: &'static str, key: &[u8], value: &[u8]) -> Self {
        Self { remedy: "the flipped bit is corrected", ..Self::missing(what, table, key, value) }
    }

    /// Rows of an unregistered collection.
    pub(crate) const fn dropped(what: String, collection: u16) -> Self {
        Self { what, remedy: "they are removed", repair: Repair::Drop { collection } }
    }

    /// A finding that cannot be repaired.
    pub(crate) const fn left(what: String, remedy: &'static str) -> Self {
        Self { what, remedy, repair: Repair::Nothing }
    }

    pub(crate) fn indexes(what: String, collection: u16) -> Self {
        Self { what, remedy: "it is rebuilt from the points", repair: Repair::Indexes { collection } }
    }

    /// Whether the repair removes data that may have no other copy.
    #[must_use]
    pub const fn loses_data(&self) -> bool {
        matches!(self.repair, Repair::Salvage | Repair::Remove { is_copy: false, .. } | Repair::Drop { .. })
    }

    /// Whether the repair leaves the finding as it is.
    #[must_use]
    pub const fn is_unrepairable(&self) -> bool {
        matches!(self.repair, Repair::Nothing)
    }
}

/// Checks every row of every table, on one snapshot.
pub(crate) fn check_rows(kb: &Kb, txn: &RoTxn) -> InternalResult<Vec<Finding>> {
    let mut findings = Vec::new();
    env::verify_format(kb, txn, &mut findings)?;
    state::verify(kb, txn, &mut findings)?;
    queue::verify(kb, txn, &mut findings)?;
    vectors::verify(kb, txn, &mut findings)?;
    Ok(findings)
}

/// Reports a counter that is unreadable, or lower than a value that was taken from it.
pub(crate) fn check_counter(
    kb: &Kb,
    txn: &RoTxn,
    name: &str,
    reached: u64,
    findings: &mut Vec<Finding>,
) -> InternalResult<()> {
    let stored = kb.tables.meta.get(txn, name.as_bytes())?;
    let count = stored.map_or(Some(0), |checksummed| {
        Some(u64::from_le_bytes(verify_checksum(checksummed)?.try_into().ok()?))
    });
    if count.is_none_or(|count| count < reached) {
        let what = format!("the counter {name} is damaged or behind");
        let value = with_checksum(&reached.to_le_bytes());
        findings.push(Finding::missing(what, "meta", name.as_bytes(), &value));
    }
    Ok(())
}

/// A table by its name, because the store is reopened between check and repair.
fn table_by_name(kb: &Kb, name: &str) -> InternalResult<Table> {
    kb.table(name).ok_or_else(|| Failure::internal(format!("no table {name}")))
}

/// Applies all repairs except the salvage, which ran before.
pub(crate) fn repair(kb: &Kb, txn: &mut RwTxn, findings: &[Finding]) -> InternalResult<()> {
    // Removals first: their keys may be written below.
    for finding in findings {
        if let Repair::Remove { check_rows, .. } = &finding.repair {
            for (table, key) in check_rows {
                table_by_name(kb, table)?.delete(txn, key)?;
            }
        }
    }
    let mut rebuilt = Vec::new();
    for Finding { repair, .. } in findings {
        match repair {
            Repair::Put { table, key, value } => table_by_name(kb, table)?.put(txn, key, value)?,
            Repair::Indexes { collection } if !rebuilt.contains(collection) => rebuilt.push(*collection),
            Repair::Drop { collection } => kb.tables.dropped.put(txn, &keys::collection(*collection), &[])?,
            Repair::Salvage | Repair::Remove { .. } | Repair::Indexes { .. } | Repair::Nothing => {}
        }
    }
    rebuilt.into_iter().try_for_each(|collection| vectors::rebuild_indexes(kb, txn, collection))
}
