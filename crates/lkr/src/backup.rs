//! Backups of a knowledge base as one archive, created while it is in use, and their restoration.
//!
//! An archive contains a consistent copy of the store (accounts, settings and tasks included), in the form of the embedded
//! one also if records or points are elsewhere, and every text and
//! original that the records of that copy refer to. It contains neither the embedding model nor the program's
//! configuration. The key that seals stored secrets is included only on request ([`Backup::with_secret_key`]).
//! Clusters of vectors are derived from the vectors and are not included: they are rebuilt in the background after the restore,
//! without embedding anything.

mod create;
mod inspect;
mod restore;
mod revision_file;
mod staging;
mod store_copy;

pub use create::{Backup, BackupSummary, open_backup};
pub use inspect::{add_secret_key, verify};
pub use restore::{RestoreSummary, restore};
pub(crate) use staging::STAGING;
pub(crate) use store_copy::{BackupSource, remove_stale_copy};

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

/// The kind of store in an archive's `store` folder.
const ENGINE: &str = "lmdb";

const CREATE: &str = "create backup";
const RESTORE: &str = "restore";

/// The buffer for reading files.
const BUFFER_BYTES: usize = 256 * 1024;

/// Paths in an archive.
const STORE: &str = "store/kb/data.mdb";
const BLOBS: &str = "blobs";
const UPLOADS: &str = "uploads";
const SECRET_KEY: &str = "secret.key";
/// The [`BackupProblems`] as JSON; absent if there are none.
const PROBLEMS: &str = "faults.json";

/// Files that a backup needed and that were missing or damaged, by their paths in the archive. `lkr doctor` gives the
/// details.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProblems {
    /// Texts and originals that do not exist or cannot be read.
    pub missing: Vec<String>,
    /// Texts and originals that differ from what was stored. The archive contains them unchanged.
    pub damaged: Vec<String>,
}

impl BackupProblems {
    /// Whether nothing was missing or damaged.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty()
    }
}

/// Removes a folder and its content, if it exists.
fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Maps a file system error of an operation.
fn io_error(operation: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, operation, error)
    }
}
