//! The fencing token of an unfinished task.

use lkr_domain::TaskId;
use lkr_state::{Expect, StateStoreExt, Write};

use crate::{Catalog, Error, Result, TaskSubject, key};

/// The unfinished task of a document, or of all documents, with its fencing token. Every write of the task expects the
/// token, so a worker whose task was cancelled or replaced cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveTask {
    /// What the task is about.
    pub subject: TaskSubject,
    /// The task.
    pub task_id: TaskId,
    pub(crate) version: u64,
}

impl ActiveTask {
    pub(crate) fn check(self) -> Write {
        Write::check(key::active(self.subject), Expect::Version(self.version))
    }

    pub(crate) fn end(self) -> Write {
        Write::delete(key::active(self.subject), Expect::Version(self.version))
    }
}

impl Catalog {
    /// The active record of a subject, if it has an unfinished task.
    pub async fn active(&self, subject: TaskSubject) -> Result<Option<ActiveTask>> {
        let Some(record) = self.state.get(&key::active(subject)).await? else { return Ok(None) };
        let text = std::str::from_utf8(&record.value).map_err(|e| Error::corrupt("read active task", e))?;
        let task_id = text.parse().map_err(|e| Error::corrupt("read active task", e))?;
        Ok(Some(ActiveTask { subject, task_id, version: record.version }))
    }
}
