//! What the records need of texts and originals.

use lkr_domain::{DocId, Document, Original};
use lkr_state::{Record, ScanOrder};

use crate::{
    Catalog, Error, ErrorKind, Result, Task,
    catalog::{key, read_document},
    document_state::{FailedAttemptV1, read_held},
    scan::revision_of,
};

/// A revision whose text, and original where it has one, belong to something: to a live document, to a task that has not
/// ended, or to one that failed and may be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedRevision {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// The SHA-256 of its text, where it was noted.
    pub text_sha256: Option<String>,
    /// That of its blocks.
    pub blocks_sha256: Option<String>,
    /// Where its original is stored, where it has one.
    pub original: Option<String>,
    /// The SHA-256 of that.
    pub original_sha256: Option<String>,
}

/// The records that keep a revision, in the order in which they are read.
const KEEPERS: [&str; 3] = [key::DOCUMENTS, key::ACTIVE, key::HELD];

impl Catalog {
    /// What is kept, from some `limit` records beyond `after`, and where the next ones begin; `None` after the last.
    pub async fn kept(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ReferencedRevision>, Option<String>)> {
        let after = after.unwrap_or(key::DOCUMENTS);
        let mut keepers = KEEPERS.into_iter().skip_while(|prefix| !after.starts_with(prefix));
        let Some(prefix) = keepers.next() else { return Ok((Vec::new(), None)) };
        let records = self.state.scan(prefix, Some(after), ScanOrder::Ascending, limit).await?;
        let mut kept = Vec::with_capacity(records.len());
        for (key, record) in &records {
            kept.extend(self.kept_by(key, record).await?);
        }
        let last = records.last().filter(|_| records.len() == limit).map(|(key, _)| key.clone());
        Ok((kept, last.or_else(|| keepers.next().map(str::to_owned))))
    }

    async fn kept_by(&self, key: &str, record: &Record) -> Result<Option<ReferencedRevision>> {
        if let Some(id) = key.strip_prefix(key::DOCUMENTS) {
            let doc_id = id.parse().map_err(|e| Error::corrupt("read document key", e))?;
            let document = read_document(doc_id, record)?.value;
            return Ok(Some(ReferencedRevision::of_document(document)));
        }
        if key.starts_with(key::ACTIVE) {
            let task_id = std::str::from_utf8(&record.value).ok().and_then(|id| id.parse().ok());
            let task_id = task_id.ok_or_else(|| wrong("read active task", key))?;
            let task = self.task(task_id).await?;
            return Ok(task.and_then(ReferencedRevision::of_task));
        }
        let FailedAttemptV1 { task_id, original } = read_held(&record.value)?;
        if let Some(task) = self.task(task_id).await? {
            return Ok(ReferencedRevision::of_task(task));
        }
        let named = key.strip_prefix(key::HELD).and_then(revision_of);
        let (doc_id, revision) = named.ok_or_else(|| wrong("read held input", key))?;
        let (text_sha256, blocks_sha256, original_sha256) = (None, None, None);
        Ok(Some(ReferencedRevision {
            doc_id,
            revision,
            text_sha256,
            blocks_sha256,
            original,
            original_sha256,
        }))
    }
}

impl ReferencedRevision {
    fn of_document(document: Document) -> Self {
        let (original, original_sha256) = of_original(document.original);
        Self {
            doc_id: document.doc_id,
            revision: document.revision,
            text_sha256: Some(document.content_sha256),
            blocks_sha256: None,
            original,
            original_sha256,
        }
    }

    /// The revision that a task makes; `None` if the task is about all documents.
    fn of_task(task: Task) -> Option<Self> {
        let doc_id = task.subject.doc_id()?;
        let (original, original_sha256) = of_original(task.input.original);
        Some(Self {
            doc_id,
            revision: task.input.revision,
            text_sha256: task.input.text_sha256,
            blocks_sha256: task.input.blocks_sha256,
            original,
            original_sha256,
        })
    }
}

fn of_original(original: Option<Original>) -> (Option<String>, Option<String>) {
    original.map_or((None, None), |original| (Some(original.path), original.sha256))
}

fn wrong(operation: &'static str, key: &str) -> Error {
    Error::new(ErrorKind::Corrupt, operation, format!("the record {key} is none"))
}
