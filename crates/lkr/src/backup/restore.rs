//! Restoring an archive.

use std::{io, path::Path, sync::Arc};

use lkr_archive::{ArchiveReader, Entry};
use lkr_catalog::{Catalog, STORE_VERSION};
use lkr_store_lmdb::LmdbStore;
use tokio::{
    fs,
    io::{AsyncRead, AsyncWriteExt, BufReader},
};

use super::{
    BUFFER_BYTES, BackupProblems, ENGINE, PROBLEMS, RESTORE, SECRET_KEY, STORE,
    inspect::{read_problems, read_small_entry},
    io_error,
    staging::StagedRestore,
};
use crate::{
    Error, ErrorKind, Folders, Result, blocking::blocking, embedded_store::inspection_options, error::During,
};

/// What a restore wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// The number of files.
    pub files: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Files that were missing or damaged when the archive was created.
    pub problems: BackupProblems,
    /// Whether the archive contained the key that seals stored secrets.
    pub with_secret_key: bool,
}

/// Restores the knowledge base of an archive into unused folders. The folders are locked during the restore, so no
/// server can start on them. Nothing is moved into place before the whole archive was read and verified; the store is
/// moved last. What a restore that was interrupted left there, in place or not, is removed first.
///
/// # Errors
/// `Conflict` if the folders contain data. `Invalid` if `from` is not an archive, is damaged or was written by a later
/// version; in that case nothing is left in the folders.
pub async fn restore(from: impl AsyncRead + Unpin, to: &Folders) -> Result<RestoreSummary> {
    let mut reader = ArchiveReader::open(from).await.during(RESTORE)?;
    let info = reader.info();
    if info.engine != ENGINE {
        let reason =
            format!("the archive contains a store of kind {}; this program supports {ENGINE}", info.engine);
        return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
    }
    if info.version > STORE_VERSION {
        return Err(newer_version(info.version));
    }
    let mut restorer = Restorer {
        staged: StagedRestore::prepare(to)?,
        summary: RestoreSummary::default(),
        has_store: false,
    };
    while let Some(entry) = reader.next().await.during(RESTORE)? {
        restorer.unpack(entry).await?;
    }
    restorer.finish().await
}

struct Restorer {
    staged: StagedRestore,
    summary: RestoreSummary,
    has_store: bool,
}

impl Restorer {
    async fn unpack<R: AsyncRead + Unpin>(&mut self, mut entry: Entry<'_, R>) -> Result<()> {
        let path = entry.path().to_owned();
        match path.as_str() {
            SECRET_KEY => {
                self.staged.put_secret_key(read_small_entry(&mut entry).await?)?;
                self.summary.with_secret_key = true;
            }
            PROBLEMS => self.summary.problems = read_problems(&mut entry).await?,
            _ => {
                self.has_store |= path == STORE;
                let file = self.staged.staging_path(&path)?;
                self.summary.bytes += unpack(&mut entry, &file).await.map_err(unpack_error)?;
            }
        }
        self.summary.files += u64::from(path != PROBLEMS);
        Ok(())
    }

    /// Checks that the unpacked store can be opened, and moves everything into place.
    async fn finish(self) -> Result<RestoreSummary> {
        if !self.has_store {
            return Err(Error::new(ErrorKind::Invalid, RESTORE, "the archive contains no store"));
        }
        let staged = self.staged.staged_store().to_owned();
        let opened = blocking(RESTORE, move || {
            LmdbStore::open(&staged, inspection_options())
                .map_err(|error| Error::new(ErrorKind::Invalid, RESTORE, error))
        });
        let store = opened.await?;
        let version = Catalog::new(Arc::new(store.state())).version().await.during(RESTORE)?;
        if version > STORE_VERSION {
            return Err(newer_version(version));
        }
        blocking(RESTORE, move || {
            drop(store);
            self.staged.commit()?;
            Ok(self.summary)
        })
        .await
    }
}

fn newer_version(version: u64) -> Error {
    let reason = format!(
        "the archive contains a store of version {version}; this program supports versions up to {STORE_VERSION}"
    );
    Error::new(ErrorKind::Invalid, RESTORE, reason)
}

async fn unpack(entry: &mut (impl AsyncRead + Unpin), to: &Path) -> io::Result<u64> {
    if let Some(folder) = to.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        builder.mode(0o700);
        builder.create(folder).await?;
    }
    let mut file = fs::File::create_new(to).await?;
    let copied = tokio::io::copy_buf(&mut BufReader::with_capacity(BUFFER_BYTES, entry), &mut file).await?;
    file.flush().await?;
    Ok(copied)
}

/// Tells errors of the archive from errors of the disk.
fn unpack_error(error: io::Error) -> Error {
    match error.kind() {
        // Only the archive reader returns these kinds.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            Error::new(ErrorKind::Invalid, RESTORE, error)
        }
        _ => io_error(RESTORE)(error),
    }
}
