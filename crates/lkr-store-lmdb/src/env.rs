//! The LMDB environments, and the tables of `kb`.

mod format;
mod give_back;
mod readers;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use heed::{
    CommitOrAbort, Database, Env, EnvClosingEvent, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls,
    types::Bytes,
};

pub(crate) use self::{format::verify as verify_format, give_back::GivenBack, readers::Snapshot};
use self::{
    format::{refuse_known_formats, refuse_other_formats},
    readers::Readers,
};
use crate::{
    codec::{damaged, strip_checksum, with_checksum},
    error::{Error, Failure, InternalResult, Result},
};

/// A table that maps bytes to bytes, ordered by the bytes of the keys.
pub(crate) type Table = Database<'static, Bytes, Bytes>;
/// An environment whose read transactions are not bound to a thread.
pub(crate) type Environment = Env<WithoutTls>;

/// The data file of an LMDB environment.
pub(crate) const DATA: &str = "data.mdb";
const SMALLEST_MAP: usize = 1 << 30;
const MAX_READERS: u32 = 2_048;

/// At least one page of the largest size that systems use, and less than the reader table.
const LOCK_FILE_BEGINNING: usize = 64 * 1024;

/// How a data file is mapped: see [`LmdbOptions`](crate::LmdbOptions).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    /// The address space, in bytes.
    pub(crate) size: usize,
    /// The size of the largest file of which more is read than is asked for, in bytes.
    pub(crate) read_ahead_below: u64,
}

/// A map for tests.
#[cfg(test)]
impl Default for Map {
    fn default() -> Self {
        Self { size: SMALLEST_MAP, read_ahead_below: u64::MAX }
    }
}

/// The primary data: records, tasks, vectors, postings, bitmaps.
#[derive(Debug, Clone)]
pub(crate) struct Kb {
    /// Private, so that nothing reads it without being noted in `readers`.
    env: Environment,
    readers: Readers,
    pub(crate) tables: Tables,
}

macro_rules! tables {
    ($count:literal: $($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The tables of `kb`.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Tables { $($(#[$doc])* pub(crate) $name: Table),* }

        impl Kb {
            /// The table with this name.
            pub(crate) fn table(&self, name: &str) -> Option<Table> {
                match name {
                    $(stringify!($name) => Some(self.tables.$name),)*
                    _ => None,
                }
            }

            /// All tables with their names.
            pub(crate) const fn named_tables(&self) -> [(&'static str, Table); $count] {
                [$((stringify!($name), self.tables.$name)),*]
            }
        }

        const NAMES: [&str; $count] = [$(stringify!($name)),*];

        impl From<[Table; $count]> for Tables {
            fn from([$($name),*]: [Table; $count]) -> Self {
                Self { $($name),* }
            }
        }
    };
}

tables! { 16:
    /// Single values by name: the format, counters.
    meta,
    /// Key → expiry, version, value.
    state,
    /// Expiry and key → nothing: the order in which records expire.
    expiries,
    /// Task → due time, sequence number, lease.
    tasks,
    /// Due time and sequence number → task.
    due,
    /// Name → number and specification of a collection.
    collections,
    /// Alias → name.
    aliases,
    /// Number of a collection → its highest internal id. Numbers and ids are never reused.
    counters,
    /// Numbers of dropped collections whose rows are still being removed.
    dropped,
    /// Collection and point id → internal id.
    ids,
    /// Collection and internal id → point id and origin.
    origins,
    /// Collection and internal id → sparse vector, tags or their digest, payload.
    bodies,
    /// Collection and digest → tags that points have.
    tag_sets,
    /// Collection and internal id → dense vector.
    dense,
    /// Collection, term, base id → block of a posting list.
    postings,
    /// Collection, field, value, high bits → bitmap of the live ids that have the value.
    bitmaps,
}

impl Kb {
    /// Opens the environment in `dir`, or creates it.
    pub(crate) fn open(dir: &Path, map: Map) -> Result<Self> {
        let failed = Error::on_open;
        let env = open_env(dir, map, NAMES.len() as u32).map_err(failed)?;
        refuse_other_formats(&env)?;
        let tables = create_tables(&env, NAMES).map_err(failed)?.into();
        let kb = Self { env, readers: Readers::default(), tables };
        format::migrate(&kb).map_err(failed)?;
        Ok(kb)
    }

    /// Opens the environment in `dir` to repair its rows. Its pages must be undamaged.
    pub(crate) fn open_damaged(dir: &Path, map: Map) -> Result<Self> {
        let failed = |failure| Error::failure("open", failure);
        let env = open_env(dir, map, NAMES.len() as u32).map_err(failed)?;
        refuse_known_formats(&env)?;
        let tables = create_tables(&env, NAMES).map_err(failed)?.into();
        Ok(Self { env, readers: Readers::default(), tables })
    }

    /// Opens the environment in `dir` read-only. Its pages must be undamaged.
    pub(crate) fn inspect(dir: &Path, map: Map) -> Result<Self> {
        let failed = |failure| Error::failure("open", failure);
        let env = map_env(dir, map, NAMES.len() as u32).map_err(failed)?;
        refuse_known_formats(&env)?;
        let tables = open_tables(&env, NAMES).map_err(failed)?.into();
        Ok(Self { env, readers: Readers::default(), tables })
    }

    /// The present state, which stays readable until the snapshot is dropped.
    pub(crate) fn snapshot(&self) -> InternalResult<Snapshot> {
        Snapshot::open(&self.env, &self.readers)
    }

    pub(crate) fn write_txn(&self) -> InternalResult<RwTxn<'_>> {
        Ok(self.env.write_txn()?)
    }

    /// The environment for its only writer, which must not read it but in write transactions.
    pub(crate) fn writing(&self) -> Environment {
        self.env.clone()
    }

    /// Gives free pages, from the page `from` on, back to the file system if more than `spare` bytes are free, and more
    /// than a sixteenth of those in use or 128 MiB. The caller must be the only writer, and have no transaction open. `None` if
    /// the file system cannot take them.
    pub(crate) fn give_back(&self, spare: u64, from: u64) -> InternalResult<Option<GivenBack>> {
        give_back::give_back(&self.env, &self.readers, spare, from)
    }

    /// The number of slots for readers that were ever used at once.
    #[cfg(test)]
    pub(crate) fn reader_slots(&self) -> usize {
        self.env.info().number_of_readers as usize
    }

    /// Closes the environment for good; an event that waits for its other users.
    pub(crate) fn prepare_for_closing(self) -> EnvClosingEvent {
        self.env.prepare_for_closing()
    }

    /// The value of the counter `name`; 0 if it is missing.
    pub(crate) fn counter(&self, txn: &RoTxn, name: &str) -> InternalResult<u64> {
        let Some(checksummed) = self.tables.meta.get(txn, name.as_bytes())? else { return Ok(0) };
        let described = || format!("the counter {name}");
        let bytes = strip_checksum(checksummed, described)?.try_into().map_err(|_| damaged(described))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Increments the counter `name` and returns its new value.
    pub(crate) fn count(&self, txn: &mut RwTxn, name: &str) -> InternalResult<u64> {
        let next = self.counter(txn, name)? + 1;
        self.tables.meta.put(txn, name.as_bytes(), &with_checksum(&next.to_le_bytes()))?;
        Ok(next)
    }

    /// Writes a compacted, consistent copy into the new folder `to`, which [`LmdbStore::open`](crate::LmdbStore::open)
    /// opens. Reads and writes continue.
    pub(crate) fn copy(&self, to: &Path) -> InternalResult<()> {
        fs::create_dir(to)?;
        let copied = self.copy_into(to);
        if copied.is_err() {
            // A partial copy is useless; a failure to remove it adds nothing to the first failure.
            let _ = fs::remove_dir_all(to);
        }
        copied
    }

    fn copy_into(&self, to: &Path) -> InternalResult<()> {
        let dir = to.join("kb");
        fs::create_dir(&dir)?;
        let _reader = self.readers.enter(&self.env);
        let file = self.env.copy_to_path(dir.join(DATA), heed::CompactionOption::Enabled)?;
        file.sync_all()?;
        File::open(dir)?.sync_all()?;
        Ok(File::open(to)?.sync_all()?)
    }
}

/// Opens the environment in `dir`, which is created if it does not exist.
pub(crate) fn open_env(dir: &Path, map: Map, tables: u32) -> InternalResult<Environment> {
    fs::create_dir_all(dir)?;
    let env = map_env(dir, map, tables)?;
    extend_file(&env)?;
    Ok(env)
}

/// Maps the environment in `dir`.
fn map_env(dir: &Path, map: Map, tables: u32) -> InternalResult<Environment> {
    let lock_file = dir.join("lock.mdb");
    loop {
        let allocated = allocate(&lock_file)?;
        let env = open_at_largest_size(dir, map, tables)?;
        if fs::metadata(&lock_file)?.len() <= allocated {
            env.clear_stale_readers()?;
            return Ok(env);
        }
        // It was made or extended. It cannot be allocated while the environment is open: a process that closes a file loses
        // its locks on it. Another program of LMDB, such as mdb_stat, would take the environment for one that nobody
        // uses, and initialise the mutexes of its writers again.
        env.prepare_for_closing().wait();
    }
}

/// Opens the environment in `dir` with a map of the size of `map`, or of the largest half, quarter and so on that the system grants.
fn open_at_largest_size(dir: &Path, map: Map, tables: u32) -> InternalResult<Environment> {
    let stored = fs::metadata(dir.join(DATA)).map_or(0, |metadata| metadata.len());
    // What the system would read around a row takes the place of other rows if they do not all fit into memory.
    let flags = match stored > map.read_ahead_below {
        true => EnvFlags::NO_READ_AHEAD,
        false => EnvFlags::empty(),
    };
    let mut size = map.size.next_multiple_of(1 << 20).max(1 << 20);
    loop {
        match open_at_size(dir, (size, flags), tables) {
            Err(heed::Error::Io(error)) if out_of_space(&error) && size / 2 >= SMALLEST_MAP => size /= 2,
            opened => return Ok(opened?),
        }
    }
}

fn open_at_size(dir: &Path, (size, flags): (usize, EnvFlags), tables: u32) -> heed::Result<Environment> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(size).max_dbs(tables).max_readers(MAX_READERS);
    // SAFETY: the file is mapped read-only, and the lock on the folder keeps other processes of this program away from
    // it. The file never shrinks while it is open, because LMDB never truncates it and nothing else writes to it. The flags
    // say at most how it is read.
    #[expect(unsafe_code, reason = "a memory map is only as sound as its file")]
    unsafe {
        options.flags(flags).open(dir)
    }
}

/// Whether the system refused the address space for the map.
fn out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::InvalidInput)
        || error.kind() == io::ErrorKind::FileTooLarge
}

/// Allocates the whole reader table on disk, or its beginning if there is none yet, and returns its length in bytes. LMDB writes to
/// it through its map, so a full disk would otherwise end the process. Nothing else may use the file.
fn allocate(lock_file: &Path) -> InternalResult<u64> {
    let mut bytes = match fs::read(lock_file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        bytes => bytes?,
    };
    // LMDB extends a shorter file without allocating it, and initialises its beginning at once.
    bytes.resize(bytes.len().max(LOCK_FILE_BEGINNING), 0);
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(lock_file)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    Ok(bytes.len() as u64)
}

/// Extends the file to the last page that the environment knows. Pages that were freed before they were written, or
/// that were truncated, may be beyond its end. Read as zeros they are an error to LMDB; beyond the end of the file
/// they would end the process.
fn extend_file(env: &Environment) -> InternalResult<()> {
    let pages = (env.info().last_page_number as u64).checked_add(1);
    let needed = pages.and_then(|pages| pages.checked_mul(u64::from(env.unnamed_database_stat().page_size)));
    let needed = needed.ok_or_else(|| damaged(|| "the number of the last page".to_owned()))?;
    let file = env.try_clone_inner_file()?;
    if file.metadata()?.len() < needed {
        file.set_len(needed)?;
    }
    Ok(())
}

/// Creates missing tables and opens all.
pub(crate) fn create_tables<const N: usize>(
    env: &Environment,
    names: [&str; N],
) -> InternalResult<[Table; N]> {
    let txn = env.write_txn()?;
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        let mut tables = Vec::with_capacity(N);
        for name in names {
            tables.push(opener.create_database::<Bytes, Bytes>(txn, Some(name))?);
        }
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(tables.first_chunk::<N>().copied()))
    })?;
    created.commit().flatten().ok_or_else(|| Failure::internal("the tables were not opened"))
}

/// Opens tables, all of which must exist.
fn open_tables<const N: usize>(env: &Environment, names: [&str; N]) -> InternalResult<[Table; N]> {
    let txn = env.read_txn()?;
    let opened = env.open_databases_and_commit(txn, |opener, txn| {
        let mut tables = Vec::with_capacity(N);
        for name in names {
            tables.extend(opener.open_database::<Bytes, Bytes>(txn, Some(name))?);
        }
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(tables.first_chunk::<N>().copied()))
    })?;
    opened.commit().flatten().ok_or_else(|| damaged(|| "the list of tables".to_owned()))
}
