//! Revisions that nothing refers to, until the janitor collects them.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, ScanOrder, Write};

use crate::{Catalog, FailedAttempt, Result, Task, TaskInput, key};

/// A revision whose points, text and original no record refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// The path of its original, if it has one.
    pub original: Option<String>,
}

impl Garbage {
    /// The revision that a task would have made; `None` if the task is about all documents.
    #[must_use]
    pub fn of_task(task: &Task) -> Option<Self> {
        task.subject.doc_id().map(|doc_id| Self::of_input(doc_id, &task.input))
    }

    pub(crate) fn of_input(doc_id: DocId, input: &TaskInput) -> Self {
        let original = input.original.as_ref().map(|original| original.path.clone());
        Self { doc_id, revision: input.revision, original }
    }

    pub(crate) fn of_document(document: &Document) -> Self {
        let original = document.original.as_ref().map(|original| original.path.clone());
        Self { doc_id: document.doc_id, revision: document.revision, original }
    }

    pub(crate) fn of_failed_attempt(doc_id: DocId, attempt: &FailedAttempt) -> Self {
        Self { doc_id, revision: attempt.revision, original: attempt.original.clone() }
    }

    /// The write that queues the revision for collection. The value is the path of its original.
    pub(crate) fn put(&self) -> Write {
        let path = self.original.clone().unwrap_or_default();
        Write::put(key::garbage(self.doc_id, self.revision), Expect::Any, path)
    }
}

/// The writes that discard a failed attempt.
pub(crate) fn discard_failed_attempt(doc_id: DocId, attempt: &FailedAttempt) -> [Write; 3] {
    let key = key::failed_attempt(doc_id, attempt.revision);
    let concurrent_edit = key::concurrent_edit(doc_id, attempt.revision);
    [
        Write::delete(key, Expect::Version(attempt.version)),
        Write::delete(concurrent_edit, Expect::Any),
        Garbage::of_failed_attempt(doc_id, attempt).put(),
    ]
}

impl Catalog {
    /// Up to `limit` revisions to collect, beyond `after`.
    pub async fn garbage(&self, after: Option<&Garbage>, limit: usize) -> Result<Vec<Garbage>> {
        let after = after.map(|garbage| key::garbage(garbage.doc_id, garbage.revision));
        let records = self.state.scan(key::GARBAGE, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, record)| parse(key, &record.value)).collect())
    }

    /// Removes the record of a collected revision.
    pub async fn forget_garbage(&self, garbage: &Garbage) -> Result<()> {
        let delete = Write::delete(key::garbage(garbage.doc_id, garbage.revision), Expect::Any);
        Ok(self.state.apply(vec![delete]).await?)
    }
}

pub(crate) fn parse(key: &str, value: &[u8]) -> Option<Garbage> {
    let (doc_id, revision) = key.strip_prefix(key::GARBAGE)?.split_once('/')?;
    let path = std::str::from_utf8(value).ok().filter(|path| !path.is_empty());
    let original = path.map(str::to_owned);
    Some(Garbage { doc_id: doc_id.parse().ok()?, revision: revision.parse().ok()?, original })
}
