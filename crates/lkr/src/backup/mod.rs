//! A knowledge base as one file, taken while it works, and back.
//!
//! An archive holds a consistent copy of the store, with accounts, settings and tasks, and every text and original that
//! the records of that copy need. It holds neither the embedding model nor the program's configuration; the key that
//! seals stored secrets only where whoever makes it [adds](Backup::with_secret_key) it. The graphs over the vectors are
//! derived and not in it: they are made anew behind the first searches, nothing is embedded again.

mod look;
mod restore;
mod take;

pub use look::{add_secret_key, verify};
pub use restore::{Restored, restore};
pub use take::{BackedUp, Backup, open_backup};
pub(crate) use take::{Embedded, clear_copies};

/// The name of what is stored in an archive's `store`.
const ENGINE: &str = "lmdb";

/// Where in an archive things are.
const STORE: &str = "store/kb/data.mdb";
const BLOBS: &str = "blobs";
const UPLOADS: &str = "uploads";
const SECRET_KEY: &str = "secret.key";
/// The paths of what was needed and not there, as JSON; only where there are such.
const MISSING: &str = "missing.json";
