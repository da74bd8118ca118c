//! A knowledge base as one file, taken while it works, and back.
//!
//! An archive holds a consistent copy of the store, with accounts, settings and tasks, and every text and original that
//! the records of that copy need. It holds neither the embedding model nor the program's configuration; the key that
//! seals stored secrets only where whoever makes it [adds](Backup::with_secret_key) it. The graphs over the vectors are
//! derived and not in it: they are made anew behind the first searches, nothing is embedded again.

mod look;
mod places;
mod restore;
mod take;

pub use look::{add_secret_key, verify};
pub use restore::{RestoreSummary, restore};
pub use take::{Backup, BackupSummary, open_backup};
pub(crate) use take::{Embedded, clear_copies};

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

/// The name of what is stored in an archive's `store`.
const ENGINE: &str = "lmdb";

const RESTORE: &str = "restore";

/// How many bytes of a file are read at a time.
const AT_ONCE: usize = 256 * 1024;

/// Where in an archive things are.
const STORE: &str = "store/kb/data.mdb";
const BLOBS: &str = "blobs";
const UPLOADS: &str = "uploads";
const SECRET_KEY: &str = "secret.key";
/// What was wrong with what was needed, as JSON; only where something was.
const FAULTS: &str = "faults.json";

/// What was needed for a backup and was not as it should be, by paths in the archive. Whoever finds any had better ask the
/// doctor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProblems {
    /// Texts and originals that are not there, or cannot be read.
    pub missing: Vec<String>,
    /// Those that are not what was stored. They are in the archive as they are.
    pub damaged: Vec<String>,
}

impl BackupProblems {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty()
    }
}

/// Removes a folder with all that is in it; nothing where there is none.
fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A failure of the disk in an operation.
fn failed(operation: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, operation, error)
    }
}
