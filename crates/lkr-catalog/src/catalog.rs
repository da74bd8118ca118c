use std::sync::Arc;

use lkr_domain::{DocId, Document, TaskId};
use lkr_state::{Record, StateStore, StateStoreExt, Write};

use crate::{Error, Result, Task, document};

/// The records over a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub(crate) state: Arc<dyn StateStore>,
}

/// A value and the version under which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The value.
    pub value: T,
    /// The version, for compare-and-set.
    pub version: u64,
}

impl Catalog {
    /// The catalog over `state`.
    #[must_use]
    pub fn new(state: Arc<dyn StateStore>) -> Self {
        Self { state }
    }

    /// The record of a live document.
    pub async fn document(&self, doc_id: DocId) -> Result<Option<Stored<Document>>> {
        let record = self.state.get(&key::document(doc_id)).await?;
        record.map(|record| read_document(doc_id, &record)).transpose()
    }

    /// The records of several documents, in the order of their ids; `None` for those that are not live.
    pub async fn documents(&self, ids: &[DocId]) -> Result<Vec<Option<Document>>> {
        let keys: Vec<_> = ids.iter().map(|&id| key::document(id)).collect();
        let records = self.state.get_many(&keys).await?;
        ids.iter()
            .zip(records)
            .map(|(&id, record)| record.map(|r| document::decode(id, &r.value)).transpose())
            .collect()
    }

    /// A task's record.
    pub async fn task(&self, task_id: TaskId) -> Result<Option<Task>> {
        let record = self.state.get(&key::task(task_id)).await?;
        record.map(|record| read_task(&record)).transpose()
    }

    /// The write that makes cached answers stale, for changes of other things than documents that searches show.
    #[must_use]
    pub fn stale_answers() -> Write {
        Write::increment(key::GENERATION)
    }

    /// Grows with every change that a search could show. What was computed under an older number may be stale.
    pub async fn generation(&self) -> Result<u64> {
        Ok(self.state.counter(key::GENERATION).await?)
    }
}

pub(crate) fn read_document(doc_id: DocId, record: &Record) -> Result<Stored<Document>> {
    Ok(Stored { value: document::decode(doc_id, &record.value)?, version: record.version })
}

pub(crate) fn read_task(record: &Record) -> Result<Task> {
    serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read task record", e))
}

pub(crate) fn write_task(task: &Task) -> Result<Vec<u8>> {
    serde_json::to_vec(task).map_err(|e| Error::corrupt("write task record", e))
}

/// The names of keys.
pub(crate) mod key {
    use lkr_domain::{DocId, TaskId};

    pub(crate) const GENERATION: &str = "generation";
    pub(crate) const DOCUMENTS: &str = "doc/";
    pub(crate) const TASKS: &str = "task/";
    pub(crate) const TRASH: &str = "trash/";
    pub(crate) const CHANGES: &str = "change/";
    pub(crate) const UPLOADS: &str = "upload/";

    pub(crate) const UNEMBEDDED: &str = "unembedded/";

    /// A live document without dense vectors.
    pub(crate) fn unembedded(id: DocId) -> String {
        format!("{UNEMBEDDED}{id}")
    }

    pub(crate) fn document(id: DocId) -> String {
        format!("{DOCUMENTS}{id}")
    }

    pub(crate) fn task(id: TaskId) -> String {
        format!("{TASKS}{id}")
    }

    /// The unfinished task of a document.
    pub(crate) fn active(id: DocId) -> String {
        format!("active/{id}")
    }

    /// An original that is being stored for a document that is not accepted yet.
    pub(crate) fn upload(id: DocId) -> String {
        format!("{UPLOADS}{id}")
    }

    /// A revision whose points and text are to be removed.
    pub(crate) fn trash(id: DocId, revision: u64) -> String {
        format!("{TRASH}{id}/{revision}")
    }
}
