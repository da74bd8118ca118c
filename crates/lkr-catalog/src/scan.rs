//! Every record by its key, for those who look whether all of them belong together.

use lkr_domain::{DocId, Document, TaskId};
use lkr_state::{Record, ScanOrder, Write};

use crate::{
    Catalog, ChangeNote, DocumentChange, Garbage, Result, Task,
    accept::IdempotencyRecordV1,
    document,
    document_state::{FailedAttemptV1, read_failed_attempt},
    embedding::is_cosine_scale,
    garbage, key,
    task_record::read_task,
    uploads::UploadV1,
};

/// A record, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct ScannedRecord {
    /// Its key.
    pub key: String,
    /// Its version, for compare-and-set.
    pub version: u64,
    /// What it says; none where it cannot be read.
    pub content: Option<RecordContent>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordContent {
    /// A live document.
    Document(Box<Document>),
    /// A task.
    Task(Box<Task>),
    /// An unfinished task, and the [id of its subject's record](crate::TaskSubject::record_id).
    ActiveTask(DocId, TaskId),
    /// What a failed task left: document, revision, task, the path of its original.
    FailedAttempt(DocId, u64, TaskId, Option<String>),
    /// What a replacement that makes this revision takes over.
    ConcurrentEdit(DocId, u64),
    /// That a document has a text of this digest.
    Content(String, DocId),
    /// The fingerprint of a document's text.
    Simhash(DocId, u64),
    /// The document of somebody's upserts.
    Upsert(DocId),
    /// The tasks of an idempotency key.
    Idempotency(Vec<TaskId>),
    /// The gold set of a task.
    Gold(TaskId),
    /// What is to be collected.
    Garbage(Garbage),
    /// A change whose tags may be set already.
    Change(ChangeNote),
    /// An original that is being stored, and where.
    Upload(DocId, String),
    /// A document without dense vectors.
    Unembedded(DocId),
    /// Something that stands for itself.
    Standalone,
    /// What the catalog knows nothing of: the record as it is.
    Unknown(Record),
}

impl Catalog {
    /// Up to `limit` records beyond the key `after`, of all kinds, in the order of their keys.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn scan_records(&self, after: Option<&str>, limit: usize) -> Result<Vec<ScannedRecord>> {
        let records = self.state.scan("", after, ScanOrder::Ascending, limit).await?;
        let read = |(key, record): (String, Record)| {
            let version = record.version;
            ScannedRecord { content: record_content(&key, record), key, version }
        };
        Ok(records.into_iter().map(read).collect())
    }

    /// Removes a record that says what is not so, unless it changed since it was scanned.
    ///
    /// # Errors
    /// `Conflict` where it changed.
    pub async fn delete_if_unchanged(&self, scanned: &ScannedRecord) -> Result<()> {
        let expect = lkr_state::Expect::Version(scanned.version);
        Ok(self.state.apply(vec![Write::delete(scanned.key.clone(), expect)]).await?)
    }

    /// A record as it is stored.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn record(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.state.get_many(&[key.to_owned()]).await?.into_iter().next().flatten())
    }

    /// Puts a live document into the indexes of texts anew.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn index_document(&self, document: &Document) -> Result<()> {
        Ok(self.state.apply(crate::finish::reindex(None, document)).await?)
    }

    /// Whether the indexes of texts hold a document as its record says.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn is_indexed(&self, document: &Document) -> Result<bool> {
        let Some(fingerprint) = &document.fingerprint else { return Ok(true) };
        let keys = [key::content(&fingerprint.sha256, document.doc_id), key::simhash(document.doc_id)];
        let records = self.state.get_many(&keys).await?;
        let bits = format!("{:016x}", fingerprint.simhash);
        Ok(matches!(&*records, [Some(_), Some(simhash)] if simhash.value == bits.as_bytes()))
    }

    /// Whether a document is noted as one without dense vectors.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn is_unembedded(&self, doc_id: DocId) -> Result<bool> {
        Ok(self.record(&key::unembedded(doc_id)).await?.is_some())
    }

    /// Records a task as unfinished again that its document has no key for, so that it ends.
    ///
    /// # Errors
    /// `Conflict` where another took its place.
    pub async fn restore_active_task(&self, task: &Task) -> Result<()> {
        let expect = lkr_state::Expect::Absent;
        let active = Write::put(key::active(task.subject), expect, task.task_id.to_string());
        Ok(self.state.apply(vec![active]).await?)
    }
}

/// What a record says; `None` where it cannot be read.
fn record_content(key: &str, record: Record) -> Option<RecordContent> {
    let value = &record.value;
    let text = || str::from_utf8(value).ok();
    let of_document = |prefix: &str| key.strip_prefix(prefix)?.parse::<DocId>().ok();
    let Some((kind, rest)) = key.split_once('/') else {
        let own = [key::GENERATION, key::VERSION, key::WITHOUT_FINGERPRINTS, key::DECLINED].contains(&key);
        return Some(if own { RecordContent::Standalone } else { RecordContent::Unknown(record) });
    };
    match kind {
        "doc" => {
            let doc_id = of_document(key::DOCUMENTS)?;
            document::decode(doc_id, value).ok().map(|document| RecordContent::Document(Box::new(document)))
        }
        "task" => {
            let task = read_task(&record).ok().filter(|task| task.task_id.to_string() == rest)?;
            Some(RecordContent::Task(Box::new(task)))
        }
        "active" => Some(RecordContent::ActiveTask(rest.parse().ok()?, text()?.parse().ok()?)),
        "held" => {
            let (doc_id, revision) = revision_of(rest)?;
            let FailedAttemptV1 { task_id, original } = read_failed_attempt(value).ok()?;
            Some(RecordContent::FailedAttempt(doc_id, revision, task_id, original))
        }
        "amend" => {
            let (doc_id, revision) = revision_of(rest)?;
            serde_json::from_slice::<DocumentChange>(value).ok()?;
            Some(RecordContent::ConcurrentEdit(doc_id, revision))
        }
        "content" => {
            let (sha256, doc_id) = rest.split_once('/')?;
            Some(RecordContent::Content(sha256.to_owned(), doc_id.parse().ok()?))
        }
        "simhash" => Some(RecordContent::Simhash(rest.parse().ok()?, u64::from_str_radix(text()?, 16).ok()?)),
        "upsert" => Some(RecordContent::Upsert(text()?.parse().ok()?)),
        "idempotency" => {
            let IdempotencyRecordV1 { tasks } = serde_json::from_slice(value).ok()?;
            Some(RecordContent::Idempotency(tasks))
        }
        "gold" => Some(RecordContent::Gold(rest.parse().ok()?)),
        "trash" => garbage::parse(key, value).map(RecordContent::Garbage),
        "change" => ChangeNote::parse(key).map(RecordContent::Change),
        "upload" => {
            let UploadV1 { path, .. } = serde_json::from_slice(value).ok()?;
            Some(RecordContent::Upload(rest.split('/').next()?.parse().ok()?, path))
        }
        "unembedded" => of_document(key::UNEMBEDDED).map(RecordContent::Unembedded),
        "content-guard" => Some(RecordContent::Standalone),
        "spread" => is_cosine_scale(value).then_some(RecordContent::Standalone),
        _ => Some(RecordContent::Unknown(record)),
    }
}

/// The document and revision that the end of a key names.
pub(crate) fn revision_of(rest: &str) -> Option<(DocId, u64)> {
    let (doc_id, revision) = rest.split_once('/')?;
    Some((doc_id.parse().ok()?, revision.parse().ok()?))
}
