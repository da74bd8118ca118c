//! The revisions that records refer to.

use lkr_domain::{DocId, Document, Original};
use lkr_state::{Record, ScanOrder};

use crate::{
    Catalog, Error, ErrorKind, Result, Task,
    catalog::read_document,
    document_state::{FailedAttemptV1, read_failed_attempt},
    key,
    scan::revision_of,
};

/// A revision that a live document, an unfinished task or a failed attempt refers to. Its text and its original are
/// never collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedRevision {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// The SHA-256 of its text, if it was recorded.
    pub text_sha256: Option<String>,
    /// The SHA-256 of its blocks, if it was recorded.
    pub blocks_sha256: Option<String>,
    /// The path of its original, if it has one.
    pub original: Option<String>,
    /// The SHA-256 of its original, if it was recorded.
    pub original_sha256: Option<String>,
}

/// The prefixes of the records that refer to a revision, in the order in which they are scanned.
const REFERRING_RECORDS: [&str; 3] = [key::DOCUMENTS, key::ACTIVE, key::FAILED_ATTEMPTS];

impl Catalog {
    /// The revisions that up to `limit` records beyond `after` refer to, and where the next page begins; `None` after
    /// the last.
    pub async fn referenced_revisions(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ReferencedRevision>, Option<String>)> {
        let after = after.unwrap_or(key::DOCUMENTS);
        let mut prefixes = REFERRING_RECORDS.into_iter().skip_while(|prefix| !after.starts_with(prefix));
        let Some(prefix) = prefixes.next() else { return Ok((Vec::new(), None)) };
        let records = self.state.scan(prefix, Some(after), ScanOrder::Ascending, limit).await?;
        let mut revisions = Vec::with_capacity(records.len());
        for (key, record) in &records {
            revisions.extend(self.referenced_by(key, record).await?);
        }
        let last = records.last().filter(|_| records.len() == limit).map(|(key, _)| key.clone());
        Ok((revisions, last.or_else(|| prefixes.next().map(str::to_owned))))
    }

    async fn referenced_by(&self, key: &str, record: &Record) -> Result<Option<ReferencedRevision>> {
        if let Some(id) = key.strip_prefix(key::DOCUMENTS) {
            let doc_id = id.parse().map_err(|e| Error::corrupt("read document key", e))?;
            let document = read_document(doc_id, record)?.value;
            return Ok(Some(ReferencedRevision::of_document(document)));
        }
        if key.starts_with(key::ACTIVE) {
            let task_id = std::str::from_utf8(&record.value).ok().and_then(|id| id.parse().ok());
            let task_id = task_id.ok_or_else(|| unreadable("read active task", key))?;
            let task = self.task(task_id).await?;
            return Ok(task.and_then(ReferencedRevision::of_task));
        }
        let FailedAttemptV1 { task_id, original } = read_failed_attempt(&record.value)?;
        if let Some(task) = self.task(task_id).await? {
            return Ok(ReferencedRevision::of_task(task));
        }
        let suffix = key.strip_prefix(key::FAILED_ATTEMPTS).and_then(revision_of);
        let (doc_id, revision) = suffix.ok_or_else(|| unreadable("read failed attempt", key))?;
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

fn unreadable(operation: &'static str, key: &str) -> Error {
    Error::new(ErrorKind::Corrupt, operation, format!("the record {key} is not valid"))
}
