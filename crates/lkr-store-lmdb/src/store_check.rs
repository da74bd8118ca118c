//! Checks a store offline, and repairs it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{
    LmdbOptions, LmdbStore,
    codec::verify_checksum,
    env::{DATA, Kb},
    error::{Error, Failure, InternalResult, Result},
    lock::FolderLock,
    page_check, store,
    verify::{self, Finding, Repair},
};

/// The advice if no primary data is left.
pub(crate) const BACKUP_NEEDED: &str = "restore a backup";

/// The result of checking a store, which stays locked meanwhile.
#[derive(Debug)]
pub struct StoreCheck {
    dir: PathBuf,
    options: LmdbOptions,
    lock: FolderLock,
    findings: Vec<Finding>,
    /// `None` if its pages are damaged.
    kb: Option<Kb>,
}

impl StoreCheck {
    /// Checks the store in `dir`: the pages of its primary data, then every row. Writes only the files that LMDB and
    /// the lock need. Blocks until everything is read.
    ///
    /// # Errors
    /// Those of [`LmdbStore::open`], except damage, which becomes findings.
    pub fn new(dir: &Path, options: LmdbOptions) -> Result<Self> {
        let lock = FolderLock::take(dir)?;
        let (kb, findings) = check_store(&dir.join("kb"), &options)?;
        Ok(Self { dir: dir.to_owned(), options, lock, findings, kb })
    }

    /// What is damaged or inconsistent.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The store, opened read-only; `None` if its pages are damaged.
    #[must_use]
    pub fn into_store(self) -> Option<LmdbStore> {
        let Self { dir, options, lock, kb, .. } = self;
        kb.map(|kb| store::read_only_store(kb, &dir, options, lock))
    }

    /// Repairs the findings and opens the store. If the repair removes data, a copy of the whole data file is kept in
    /// the folder `aside`.
    ///
    /// # Errors
    /// Those of [`LmdbStore::open`]; `Corrupt` if nothing can be read.
    pub fn repair(mut self, aside: &Path) -> Result<LmdbStore> {
        self.repair_all(aside).map_err(|failure| Error::failure("repair", failure))?;
        store::open_locked(&self.dir, self.options, self.lock)
    }

    fn repair_all(&mut self, aside: &Path) -> InternalResult<()> {
        let (kb, data) = (self.dir.join("kb"), self.dir.join("kb").join(DATA));
        if let Some(ill) = missing_data(&kb) {
            return Err(Failure::corrupt(format!("{} {ill}: {BACKUP_NEEDED}", data.display())));
        }
        if self.findings.iter().any(Finding::loses_data) {
            fs::create_dir_all(aside)?;
            fs::copy(&data, aside.join(DATA))?;
            File::open(aside.join(DATA))?.sync_all()?;
        }
        if self.findings.iter().any(|finding| matches!(finding.repair, Repair::Salvage)) {
            salvage(&kb, &self.options)?;
            let (opened, findings) = check_store(&kb, &self.options).map_err(Failure::internal)?;
            self.kb = opened;
            self.findings.extend(findings);
        }
        let Some(opened) = self.kb.take() else { return Ok(()) };
        close(opened);
        let writable = Kb::open_damaged(&kb, self.options.map()).map_err(Failure::internal)?;
        let mut txn = writable.write_txn()?;
        verify::repair(&writable, &mut txn, &self.findings)?;
        txn.commit()?;
        close(writable);
        Ok(())
    }
}

/// Checks pages and rows. The store is returned only if its pages are undamaged.
fn check_store(dir: &Path, options: &LmdbOptions) -> Result<(Option<Kb>, Vec<Finding>)> {
    if let Some(ill) = missing_data(dir) {
        return Ok((None, vec![Finding::left(format!("store/kb/{DATA} {ill}"), BACKUP_NEEDED)]));
    }
    let damage = page_check::check(&dir.join(DATA)).map_err(|error| Error::io("read pages", error))?;
    if !damage.is_empty() {
        let describe_point_part = |line| Finding::salvage(format!("store/kb/{DATA}: {line}"));
        return Ok((None, damage.into_iter().map(describe_point_part).collect()));
    }
    let kb = Kb::inspect(dir, options.map())?;
    let txn = kb.snapshot().map_err(|failure| Error::failure("read rows", failure))?;
    let findings = verify::check_rows(&kb, &txn).map_err(|failure| Error::failure("read rows", failure))?;
    drop(txn);
    Ok((Some(kb), findings))
}

/// Why a folder has no primary data; `None` if it has some.
pub(crate) fn missing_data(dir: &Path) -> Option<&'static str> {
    match fs::metadata(dir.join(DATA)) {
        Ok(data) if data.len() == 0 => Some("is empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("is missing"),
        _ => None,
    }
}

fn close(kb: Kb) {
    kb.prepare_for_closing().wait();
}

/// Copies the readable rows to a new file, which replaces the damaged one.
fn salvage(dir: &Path, options: &LmdbOptions) -> InternalResult<()> {
    let fresh = dir.with_extension("salvaged");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    let kb = Kb::open(&fresh, options.map()).map_err(Failure::internal)?;
    let mut txn = kb.write_txn()?;
    let mut known = false;
    page_check::walk(&dir.join(DATA), &mut |row| {
        known |= (row.table, row.key) == ("meta", b"format")
            || (row.table == "state" && verify_checksum(row.value).is_some());
        match kb.table(row.table) {
            Some(table) => table.put(&mut txn, row.key, row.value).map_err(io::Error::other),
            None => Ok(()),
        }
    })?;
    if !known {
        return Err(Failure::corrupt("no row of the store can be read; restore a backup"));
    }
    txn.commit()?;
    close(kb);
    fs::rename(fresh.join(DATA), dir.join(DATA))?;
    File::open(dir)?.sync_all()?;
    Ok(fs::remove_dir_all(&fresh)?)
}
