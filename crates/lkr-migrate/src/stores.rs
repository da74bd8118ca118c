use std::{path::PathBuf, sync::Arc, time::Duration};

use lkr_catalog::Originals;
use lkr_state::StateStore;
use lkr_vectors::VectorStore;
use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// The stores of one side. What only one of the sides has is an error; what neither has is not migrated.
#[derive(Debug, Clone)]
pub struct Stores {
    /// The records. Always given, because a side that is being filled is marked here. If
    /// [records](MigrateOptions::records) are not migrated, both sides have the same store.
    pub state: Arc<dyn StateStore>,
    /// The points.
    pub vectors: Option<Arc<dyn VectorStore>>,
    /// The texts, their blocks and their notes, in the folders [`Texts::FOLDERS`](lkr_catalog::Texts::FOLDERS). Puts must
    /// be durable once they return, and a path has its object whole or not at all.
    pub texts: Option<Arc<dyn ObjectStore>>,
    /// The originals.
    pub originals: Option<Originals>,
}

/// How to migrate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MigrateOptions {
    /// Whether records are migrated. Otherwise both sides have the same state store.
    pub records: bool,
    /// A folder for unnamed temporary files, with room for the 16 largest originals.
    pub spool: PathBuf,
    /// How long a store may be unavailable before the migration fails.
    pub retry_for: Duration,
    /// How many texts and originals are copied or compared at once.
    pub concurrent_blobs: usize,
    /// Points in a batch.
    pub points_per_batch: usize,
    /// Records in a batch. A batch with more than 1 MiB of values is written in several steps.
    pub records_per_batch: usize,
}

impl MigrateOptions {
    /// The defaults: with records, two minutes of retries, 16 files at once, batches of 256. They were chosen, not measured.
    #[must_use]
    pub const fn new(spool: PathBuf) -> Self {
        Self {
            records: true,
            spool,
            retry_for: Duration::from_secs(120),
            concurrent_blobs: 16,
            points_per_batch: 256,
            records_per_batch: 256,
        }
    }
}

/// What a migration copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Records.
    pub records: bool,
    /// Points.
    pub points: bool,
    /// Texts, blocks and notes.
    pub texts: bool,
    /// Originals.
    pub originals: bool,
}

impl Parts {
    /// # Errors
    /// `Invalid` if only one side has a part, or nothing is to be copied.
    pub(crate) fn of(source: &Stores, target: &Stores, records: bool) -> Result<Self> {
        let both = |name: &str, source: bool, target: bool| match source == target {
            true => Ok(source),
            false => Err(invalid(format!("only one side has a store of {name}"))),
        };
        let parts = Self {
            records,
            points: both("points", source.vectors.is_some(), target.vectors.is_some())?,
            texts: both("texts", source.texts.is_some(), target.texts.is_some())?,
            originals: both("originals", source.originals.is_some(), target.originals.is_some())?,
        };
        match parts.names().is_empty() {
            true => Err(invalid("there is nothing to copy".to_owned())),
            false => Ok(parts),
        }
    }

    /// The names of the parts, separated by commas.
    #[must_use]
    pub fn names(&self) -> String {
        let parts = [
            (self.records, "records"),
            (self.points, "points"),
            (self.texts, "texts"),
            (self.originals, "originals"),
        ];
        let names: Vec<&str> = parts.into_iter().filter_map(|(has, name)| has.then_some(name)).collect();
        names.join(", ")
    }
}

fn invalid(reason: String) -> Error {
    Error::new(ErrorKind::Invalid, "migrate", reason)
}
