//! What is known about the files of a folder for one target: a cache of digests, and the refusals.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{Digest, Result, durable, error::STATE, error::folder_error};

const VERSION: u32 = 1;
/// The shortest time between two writes during a run.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// What a file system says about a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
}

/// What is known about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) digest: Digest,
    /// Whether a file with this stamp has this digest. Not if it was changed moments before it was read, because it may
    /// have been changed again within the resolution of its time.
    pub(crate) settled: bool,
    /// Why the service refused these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// The id of the folder.
    id: String,
    target: String,
    /// Whether the last run that changed something ended, so that it left no tasks.
    clean: bool,
    /// Whether a run has found files in the folder.
    #[serde(default)]
    has_had_files: bool,
    files: BTreeMap<String, Entry>,
}

/// The state of a folder for one target.
#[derive(Debug)]
pub(crate) struct State {
    /// Where it is written; `None` if it is not.
    path: Option<PathBuf>,
    record: Record,
    is_changed: bool,
    next_save: Instant,
}

impl State {
    /// Reads the state. A lost or damaged one costs reading the files again. `is_new` tells that the folder has no
    /// documents under its id yet.
    pub(crate) fn open(path: PathBuf, id: &str, target: &str, is_new: bool) -> Result<Self> {
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(folder_error(STATE, &path, &error)),
        };
        let read = serde_json::from_slice::<Record>(&content).ok();
        let mut record = read.filter(|record| record.version == VERSION).unwrap_or_default();
        record.clean |= is_new;
        record.has_had_files |= !record.files.is_empty();
        record.version = VERSION;
        id.clone_into(&mut record.id);
        target.clone_into(&mut record.target);
        Ok(Self { path: Some(path), record, is_changed: false, next_save: Instant::now() + SAVE_EVERY })
    }

    /// The same state, which is never written.
    pub(crate) fn in_memory(self) -> Self {
        Self { path: None, ..self }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.record.clean
    }

    /// Notes that tasks of an interrupted run may exist from now on.
    pub(crate) fn begin_changes(&mut self) -> Result<()> {
        self.is_changed |= self.record.clean;
        self.record.clean = false;
        self.save()
    }

    /// Notes that no tasks are left.
    pub(crate) fn end_changes(&mut self) -> Result<()> {
        self.is_changed |= !self.record.clean;
        self.record.clean = true;
        self.save()
    }

    /// Whether a run has found files in the folder.
    pub(crate) fn has_had_files(&self) -> bool {
        self.record.has_had_files
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Entry> {
        self.record.files.get(path)
    }

    /// Stores what was found. A refusal of the same bytes stays.
    pub(crate) fn insert(&mut self, path: &str, stamp: Stamp, digest: Digest, settled: bool) {
        let before = self.record.files.remove(path);
        let refused = before.filter(|before| before.digest == digest).and_then(|before| before.refused);
        self.record.has_had_files = true;
        self.record.files.insert(path.to_owned(), Entry { stamp, digest, settled, refused });
        self.is_changed = true;
    }

    /// Forgets what a file contained, because it changed.
    pub(crate) fn unsettle(&mut self, path: &str) {
        if let Some(entry) = self.record.files.get_mut(path) {
            entry.settled = false;
            self.is_changed = true;
        }
    }

    /// Sets why the service refused a file, or that it did not.
    pub(crate) fn set_refused(&mut self, path: &str, refused: Option<&str>) {
        if let Some(entry) = self.record.files.get_mut(path)
            && entry.refused.as_deref() != refused
        {
            entry.refused = refused.map(str::to_owned);
            self.is_changed = true;
        }
    }

    /// Forgets files that no longer exist.
    pub(crate) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        let before = self.record.files.len();
        self.record.files.retain(|path, _| exists(path));
        self.is_changed |= self.record.files.len() != before;
    }

    /// Writes the state if it changed.
    pub(crate) fn save(&mut self) -> Result<()> {
        if let Some(path) = &self.path
            && self.is_changed
        {
            let content = serde_json::to_vec(&self.record).map_err(io::Error::from);
            let result = content.and_then(|content| durable::write(path, &content));
            result.map_err(|error| folder_error(STATE, path, &error))?;
            self.is_changed = false;
        }
        Ok(())
    }

    /// Writes the state if the last write is some seconds ago, and so long that writing takes a tenth of the time.
    pub(crate) fn save_if_due(&mut self) -> Result<()> {
        let begun = Instant::now();
        if begun < self.next_save {
            return Ok(());
        }
        self.save()?;
        self.next_save = Instant::now() + SAVE_EVERY.max(begun.elapsed() * 10);
        Ok(())
    }
}
