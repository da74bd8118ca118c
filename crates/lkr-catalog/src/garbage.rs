//! What nobody shows any more, until it is collected.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, ScanOrder, Write};

use crate::{Catalog, FailedAttempt, Result, Task, TaskInput, catalog::key};

/// A revision whose points, text and original nobody shows any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// Where its original is stored, where it has one.
    pub original: Option<String>,
}

impl Garbage {
    /// The revision that a task was to make; `None` if the task is about all documents.
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

    pub(crate) fn of_held(doc_id: DocId, held: &FailedAttempt) -> Self {
        Self { doc_id, revision: held.revision, original: held.original.clone() }
    }

    /// The write that leaves it to be collected, with the path of its original as the value.
    pub(crate) fn put(&self) -> Write {
        let path = self.original.clone().unwrap_or_default();
        Write::put(key::garbage(self.doc_id, self.revision), Expect::Any, path)
    }
}

/// The writes that take away what a failed task left.
pub(crate) fn let_go(doc_id: DocId, held: &FailedAttempt) -> [Write; 3] {
    let key = key::held(doc_id, held.revision);
    let amendment = key::amendment(doc_id, held.revision);
    [
        Write::delete(key, Expect::Version(held.version)),
        Write::delete(amendment, Expect::Any),
        Garbage::of_held(doc_id, held).put(),
    ]
}

impl Catalog {
    /// What is to be collected beyond `after`, at most `limit`.
    pub async fn garbage(&self, after: Option<&Garbage>, limit: usize) -> Result<Vec<Garbage>> {
        let after = after.map(|garbage| key::garbage(garbage.doc_id, garbage.revision));
        let records = self.state.scan(key::TRASH, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, record)| parse(key, &record.value)).collect())
    }

    /// Forgets trash that was collected.
    pub async fn forget_garbage(&self, garbage: &Garbage) -> Result<()> {
        let delete = Write::delete(key::garbage(garbage.doc_id, garbage.revision), Expect::Any);
        Ok(self.state.apply(vec![delete]).await?)
    }
}

pub(crate) fn parse(key: &str, value: &[u8]) -> Option<Garbage> {
    let (doc_id, revision) = key.strip_prefix(key::TRASH)?.split_once('/')?;
    let path = std::str::from_utf8(value).ok().filter(|path| !path.is_empty());
    let original = path.map(str::to_owned);
    Some(Garbage { doc_id: doc_id.parse().ok()?, revision: revision.parse().ok()?, original })
}
