//! The version of the storage format, which is stored in `meta`.

use std::time::Instant;

use heed::{CommitOrAbort, RoTxn, types::Bytes};

use super::{Environment, Kb};
use crate::{
    codec::{correct_bit_flip, damaged, verify_checksum, with_checksum},
    error::{Error, ErrorKind, InternalResult, Result},
    vectors,
    verify::Finding,
};

pub(super) const FORMAT: u32 = 6;
/// The formats whose rows are read as they are. Rows of dense vectors had four bytes a value in format 3, weights in posting lists in
/// format 4, and records that never expire had an expiry in format 5.
const READ: [u32; 4] = [3, 4, 5, FORMAT];
/// The earlier format that [`migrate`] changes.
const MIGRATED: u32 = 2;

/// Refuses a store in another format, but accepts an unreadable format record, which the row check reports.
pub(super) fn refuse_known_formats(env: &Environment) -> Result<()> {
    match refuse_formats(env, &READ) {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(()),
        refused => refused,
    }
}

/// Reports an unreadable format record. The other rows show that the format is the current one, or one that is read like it.
pub(crate) fn verify(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<()> {
    let stored = kb.tables.meta.get(txn, b"format")?.and_then(verify_checksum);
    if !READ.iter().any(|format| stored == Some(&format.to_le_bytes())) {
        let what = "the format record is damaged".to_owned();
        findings.push(Finding::missing(what, "meta", b"format", &with_checksum(&FORMAT.to_le_bytes())));
    }
    Ok(())
}

/// Refuses a store in a format that [`migrate`] does not read, before anything is written to it.
pub(super) fn refuse_other_formats(env: &Environment) -> Result<()> {
    refuse_formats(env, &[&[MIGRATED][..], &READ].concat())
}

/// Brings a store of an earlier format to the current one, in one transaction. A new store gets the current format. From then
/// on, earlier versions refuse the store, which would not understand rows that are written now.
pub(super) fn migrate(kb: &Kb) -> InternalResult<()> {
    let found = stored_format(&kb.env)?;
    if found == FORMAT {
        return Ok(());
    }
    let started = Instant::now();
    let mut txn = kb.env.write_txn()?;
    if found == MIGRATED {
        vectors::migrate_from_format_2(kb, &mut txn)?;
    }
    kb.tables.meta.put(&mut txn, b"format", &with_checksum(&FORMAT.to_le_bytes()))?;
    lkr_fail_points::reach("store.write");
    txn.commit()?;
    lkr_fail_points::reach("store.written");
    if found != 0 {
        let ms = started.elapsed().as_millis();
        tracing::info!(from = found, to = FORMAT, ms, "store migrated");
    }
    Ok(())
}

/// Refuses a store whose format is none of these.
fn refuse_formats(env: &Environment, readable: &[u32]) -> Result<()> {
    let found = stored_format(env).map_err(Error::on_open)?;
    if found == 0 || readable.contains(&found) {
        return Ok(());
    }
    let whose = if found < FORMAT { "an earlier" } else { "a newer" };
    let message = format!(
        "{} has format {found}, which {whose} version wrote; this version reads format {FORMAT}",
        env.path().display()
    );
    Err(Error::new(ErrorKind::OtherFormat, "open", message))
}

/// The stored format; 0 in a new store.
fn stored_format(env: &Environment) -> InternalResult<u32> {
    let txn = env.read_txn()?;
    let opened = env.open_databases_and_commit(txn, |opener, txn| {
        let meta = opener.open_database::<Bytes, Bytes>(txn, Some("meta"))?;
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(meta))
    })?;
    let Some(meta) = opened.commit().flatten() else { return Ok(0) };
    let txn = env.read_txn()?;
    let Some(checksummed) = meta.get(&txn, b"format")? else { return Ok(0) };
    let read = |checksummed: &[u8]| Some(u32::from_le_bytes(verify_checksum(checksummed)?.try_into().ok()?));
    // A damaged record may still reveal another format.
    let other =
        || correct_bit_flip(checksummed).and_then(|whole| read(&whole)).filter(|found| *found != FORMAT);
    read(checksummed).or_else(other).ok_or_else(|| damaged(|| "the format record".to_owned()))
}
