//! What is wrong in the rows of `kb`, and what can be done about it.

use heed::{RoTxn, RwTxn};

use crate::{
    codec::{verify_checksum, with_checksum},
    env::{self, Kb, Table},
    error::{Failure, InternalResult},
    queue, state,
    vectors::{self, keys},
};

/// Something that is wrong in a store.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What, by table and key or by point.
    pub what: String,
    /// What mending does about it.
    pub remedy: &'static str,
    pub(crate) repair: Repair,
}

/// What is to be done about a finding.
#[derive(Debug, Clone)]
pub(crate) enum Repair {
    /// The readable rows go into a new file.
    Salvage,
    /// Rows go, because nobody can read them, or they say what is not so.
    Remove { check_rows: Vec<(&'static str, Vec<u8>)>, is_copy: bool },
    /// The row is written as the others say it should be.
    Put { table: &'static str, key: Vec<u8>, value: Vec<u8> },
    /// Posting lists and bitmaps of a collection are made anew of its points.
    Indexes { collection: u16 },
    /// The rows of a collection that is none go, by and by.
    Drop { collection: u16 },
    /// Everything stays as it is.
    Nothing,
}

impl Finding {
    pub(crate) fn salvage(what: String) -> Self {
        Self { what, remedy: "what can be read goes into a new file", repair: Repair::Salvage }
    }

    /// A row that cannot be read.
    pub(crate) fn unreadable(what: String, table: &'static str, key: &[u8]) -> Self {
        Self::unreadable_rows(what, vec![(table, key.to_vec())])
    }

    /// Rows of which one cannot be read, and the others are nothing without it.
    pub(crate) const fn unreadable_rows(what: String, check_rows: Vec<(&'static str, Vec<u8>)>) -> Self {
        let repair = Repair::Remove { check_rows, is_copy: false };
        Self { what, remedy: "it is moved aside", repair }
    }

    /// A row that says again what another one says, and says it wrong.
    pub(crate) fn wrong(what: String, table: &'static str, key: &[u8]) -> Self {
        let repair = Repair::Remove { check_rows: vec![(table, key.to_vec())], is_copy: true };
        Self { what, remedy: "it is removed", repair }
    }

    pub(crate) fn missing(what: String, table: &'static str, key: &[u8], value: &[u8]) -> Self {
        let repair = Repair::Put { table, key: key.to_vec(), value: value.to_vec() };
        Self { what, remedy: "it is written", repair }
    }

    /// A row of which one bit flipped, and what it was.
    pub(crate) fn flipped(what: String, table: &'static str, key: &[u8], value: &[u8]) -> Self {
        Self { remedy: "the bit that flipped is turned back", ..Self::missing(what, table, key, value) }
    }

    /// Rows of a collection that is none.
    pub(crate) const fn dropped(what: String, collection: u16) -> Self {
        Self { what, remedy: "they are removed", repair: Repair::Drop { collection } }
    }

    /// What nobody can tell how to mend.
    pub(crate) const fn left(what: String, remedy: &'static str) -> Self {
        Self { what, remedy, repair: Repair::Nothing }
    }

    pub(crate) fn indexes(what: String, collection: u16) -> Self {
        Self { what, remedy: "it is made anew of the points", repair: Repair::Indexes { collection } }
    }

    /// Whether mending it takes something away of which there may be no other copy.
    #[must_use]
    pub const fn loses_data(&self) -> bool {
        matches!(self.repair, Repair::Salvage | Repair::Remove { is_copy: false, .. } | Repair::Drop { .. })
    }

    /// Whether mending leaves it as it is.
    #[must_use]
    pub const fn is_unrepairable(&self) -> bool {
        matches!(self.repair, Repair::Nothing)
    }
}

/// Looks at every row of every table, in one state of the store.
pub(crate) fn check_rows(kb: &Kb, txn: &RoTxn) -> InternalResult<Vec<Finding>> {
    let mut findings = Vec::new();
    env::verify_format(kb, txn, &mut findings)?;
    state::verify(kb, txn, &mut findings)?;
    queue::verify(kb, txn, &mut findings)?;
    vectors::verify(kb, txn, &mut findings)?;
    Ok(findings)
}

/// Finds a counter that cannot be read, or does not stand as high as what was counted by it.
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

/// A table by its name: the store is opened anew between finding and mending.
fn table_by_name(kb: &Kb, name: &str) -> InternalResult<Table> {
    kb.table(name).ok_or_else(|| Failure::internal(format!("no table {name}")))
}

/// Does what the findings ask for, but salvage, which the rows were read after.
pub(crate) fn repair(kb: &Kb, txn: &mut RwTxn, findings: &[Finding]) -> InternalResult<()> {
    // What goes first may stand where something is to be written.
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
