//! Backups, as they are put back.

use std::{io, path::Path, sync::Arc};

use lkr_archive::{ArchiveReader, Entry};
use lkr_catalog::{Catalog, STORE_VERSION};
use lkr_store_lmdb::LmdbStore;
use tokio::{
    fs,
    io::{AsyncRead, AsyncWriteExt, BufReader},
};

use super::{
    AT_ONCE, BackupProblems, ENGINE, FAULTS, RESTORE, SECRET_KEY, STORE, failed,
    look::{faults, read_small},
    places::Places,
};
use crate::{Error, ErrorKind, Folders, Result, blocking::blocking, error::During, open::to_look_at};

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// How many files.
    pub files: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// What the archive says was not as it should be when it was made.
    pub faults: BackupProblems,
    /// Whether the key that seals stored secrets was in it.
    pub with_secret_key: bool,
}

/// Puts the knowledge base of an archive into folders in which there is none, and which no server can begin to use
/// meanwhile. Nothing is in its place before all of the archive was read and found to be as it was written; the store
/// comes last.
///
/// # Errors
/// `Conflict` where something is in these folders already. `Invalid` where it is no archive, a damaged one, or one of a
/// later version; then nothing is left of it.
pub async fn restore(from: impl AsyncRead + Unpin, to: &Folders) -> Result<RestoreSummary> {
    let mut reader = ArchiveReader::open(from).await.during(RESTORE)?;
    let about = reader.about();
    if about.engine != ENGINE {
        let reason = format!("it holds a store of kind {}, and this program knows {ENGINE}", about.engine);
        return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
    }
    if about.version > STORE_VERSION {
        return Err(newer(about.version));
    }
    let mut restoring =
        Restoring { places: Places::prepare(to)?, done: RestoreSummary::default(), has_store: false };
    while let Some(entry) = reader.next().await.during(RESTORE)? {
        restoring.take(entry).await?;
    }
    restoring.finish().await
}

struct Restoring {
    places: Places,
    done: RestoreSummary,
    has_store: bool,
}

impl Restoring {
    async fn take<R: AsyncRead + Unpin>(&mut self, mut entry: Entry<'_, R>) -> Result<()> {
        let path = entry.path().to_owned();
        match path.as_str() {
            SECRET_KEY => {
                self.places.put_secret_key(&read_small(&mut entry).await?)?;
                self.done.with_secret_key = true;
            }
            FAULTS => self.done.faults = faults(&mut entry).await?,
            _ => {
                self.has_store |= path == STORE;
                let file = self.places.staged(&path)?;
                self.done.bytes += unpack(&mut entry, &file).await.map_err(not_unpacked)?;
            }
        }
        self.done.files += u64::from(path != FAULTS);
        Ok(())
    }

    /// Looks whether the store can be opened, and puts all in its place.
    async fn finish(self) -> Result<RestoreSummary> {
        if !self.has_store {
            return Err(Error::new(ErrorKind::Invalid, RESTORE, "it holds no store"));
        }
        let staged = self.places.staged_store().to_owned();
        let opened = blocking(RESTORE, move || {
            LmdbStore::open(&staged, to_look_at())
                .map_err(|error| Error::new(ErrorKind::Invalid, RESTORE, error))
        });
        let store = opened.await?;
        let version = Catalog::new(Arc::new(store.state())).version().await.during(RESTORE)?;
        if version > STORE_VERSION {
            return Err(newer(version));
        }
        blocking(RESTORE, move || {
            drop(store);
            self.places.settle()?;
            Ok(self.done)
        })
        .await
    }
}

fn newer(version: u64) -> Error {
    let reason = format!(
        "it holds a store of version {version}, and this program knows versions up to {STORE_VERSION}"
    );
    Error::new(ErrorKind::Invalid, RESTORE, reason)
}

async fn unpack(entry: &mut (impl AsyncRead + Unpin), to: &Path) -> io::Result<u64> {
    if let Some(folder) = to.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await?;
    }
    let mut file = fs::File::create_new(to).await?;
    let copied = tokio::io::copy_buf(&mut BufReader::with_capacity(AT_ONCE, entry), &mut file).await?;
    file.flush().await?;
    Ok(copied)
}

/// A failure of the archive, or of the disk.
fn not_unpacked(error: io::Error) -> Error {
    match error.kind() {
        // That is said of an archive alone.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            Error::new(ErrorKind::Invalid, RESTORE, error)
        }
        _ => failed(RESTORE)(error),
    }
}
