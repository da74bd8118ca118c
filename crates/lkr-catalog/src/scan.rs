//! A scan of all records, for consistency checks.

use lkr_domain::{DocId, Document, SpaceName, TaskId};
use lkr_state::{Record, ScanOrder, Write};

use crate::{
    Catalog, ChangeNote, DocumentChange, Garbage, Result, Task,
    accept::IdempotencyRecordV1,
    collection_phase::is_collection_state,
    document,
    document_state::{FailedAttemptV1, read_failed_attempt},
    embedding::is_cosine_scale,
    garbage, key, partial_result, space_index,
    task_record::read_task,
    text_claims,
    text_index::{decode_simhash, encode_simhash},
    uploads::UploadV1,
};

/// A record with its decoded content.
#[derive(Debug, Clone, PartialEq)]
pub struct ScannedRecord {
    /// Its key.
    pub key: String,
    /// Its version, for compare-and-set.
    pub version: u64,
    /// Its content; `None` if it cannot be decoded.
    pub content: Option<RecordContent>,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordContent {
    /// A live document.
    Document(Box<Document>),
    /// A task.
    Task(Box<Task>),
    /// An unfinished task, and the [id of its subject's record](crate::TaskSubject::record_id).
    ActiveTask(DocId, TaskId),
    /// A failed attempt: document, revision, task, and the path of its original.
    FailedAttempt(DocId, u64, TaskId, Option<String>),
    /// The concurrent edit of the replacement with this revision.
    ConcurrentEdit(DocId, u64),
    /// The entry of a document in the index of equal texts, with the digest.
    Content(String, DocId),
    /// The SimHash of a document's text.
    Simhash(DocId, u64),
    /// The entry of a document in the index of its space.
    SpaceEntry(SpaceName, DocId),
    /// The entry of a task in an index.
    TaskEntry(TaskId),
    /// The target of an account's upserts.
    Upsert(DocId),
    /// The tasks of an idempotency key.
    Idempotency(Vec<TaskId>),
    /// The additional input of a task.
    TaskInput(TaskId),
    /// What a task has deleted so far.
    PartialResult(TaskId),
    /// A revision to collect.
    Garbage(Garbage),
    /// The note of a change whose tags may be set already.
    Change(ChangeNote),
    /// The note of an original that is being stored, with its path.
    Upload(DocId, String),
    /// A document without dense vectors.
    Unembedded(DocId),
    /// A record that refers to no other.
    Standalone,
    /// A record of another crate.
    Unknown(Record),
}

impl Catalog {
    /// Up to `limit` records of all kinds beyond the key `after`, in the order of their keys.
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

    /// Removes a record unless it changed since it was scanned.
    ///
    /// # Errors
    /// `Conflict` if it changed.
    pub async fn delete_if_unchanged(&self, scanned: &ScannedRecord) -> Result<()> {
        let expect = lkr_state::Expect::Version(scanned.version);
        Ok(self.state.apply(vec![Write::delete(scanned.key.clone(), expect)]).await?)
    }

    /// A record without decoding it.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn record(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.state.get_many(&[key.to_owned()]).await?.into_iter().next().flatten())
    }

    /// Writes the entries of a live document in the indexes of spaces and texts.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn index_document(&self, document: &Document) -> Result<()> {
        Ok(self.state.apply(crate::finish::reindex(None, document)).await?)
    }

    /// Whether the indexes of spaces and texts contain a document as its record describes it.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn is_indexed(&self, document: &Document) -> Result<bool> {
        let entry = self.record(&key::space_document(&document.space, document.doc_id)).await?;
        if entry.is_none_or(|entry| space_index::decode(&entry.value) != Some(space_index::entry(document))) {
            return Ok(false);
        }
        let Some(fingerprint) = &document.fingerprint else { return Ok(true) };
        let content = key::content(&document.space, &fingerprint.sha256, document.doc_id);
        let keys = [content, key::simhash(document.doc_id)];
        let records = self.state.get_many(&keys).await?;
        let bits = encode_simhash(&document.space, fingerprint.simhash);
        Ok(matches!(&*records, [Some(_), Some(simhash)] if simhash.value == bits.as_bytes()))
    }

    /// Whether a document is recorded as lacking dense vectors.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn is_unembedded(&self, doc_id: DocId) -> Result<bool> {
        Ok(self.record(&key::unembedded(doc_id)).await?.is_some())
    }

    /// Writes the missing active record of an unfinished task, so that the next start queues it.
    ///
    /// # Errors
    /// `Conflict` if another task took its place.
    pub async fn restore_active_task(&self, task: &Task) -> Result<()> {
        let expect = lkr_state::Expect::Absent;
        let active = Write::put(key::active(task.subject), expect, task.task_id.to_string());
        Ok(self.state.apply(vec![active]).await?)
    }
}

/// Decodes a record; `None` if it cannot be decoded.
fn record_content(key: &str, record: Record) -> Option<RecordContent> {
    let value = &record.value;
    let text = || str::from_utf8(value).ok();
    let of_document = |prefix: &str| key.strip_prefix(prefix)?.parse::<DocId>().ok();
    let Some((kind, rest)) = key.split_once('/') else {
        if key == key::COLLECTIONS {
            return is_collection_state(&record).then_some(RecordContent::Standalone);
        }
        let own = [
            key::GENERATION,
            key::VERSION,
            key::WITHOUT_FINGERPRINTS,
            key::DECLINED,
            key::SWEEPS,
            key::KNOWLEDGE_BASE,
        ];
        let is_own = own.contains(&key);
        return Some(if is_own { RecordContent::Standalone } else { RecordContent::Unknown(record) });
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
        "simhash" => Some(RecordContent::Simhash(rest.parse().ok()?, decode_simhash(value)?.1)),
        "in-space" => {
            space_index::decode(value)?;
            let (space, doc_id) = space_index::parse_key(key)?;
            Some(RecordContent::SpaceEntry(space, doc_id))
        }
        "task-in" => Some(RecordContent::TaskEntry(rest.rsplit('/').next()?.parse().ok()?)),
        "upsert" => Some(RecordContent::Upsert(text()?.parse().ok()?)),
        "idempotency" => {
            let IdempotencyRecordV1 { tasks } = serde_json::from_slice(value).ok()?;
            Some(RecordContent::Idempotency(tasks))
        }
        "gold" => Some(RecordContent::TaskInput(rest.parse().ok()?)),
        "partial-result" => {
            partial_result::decode(value).ok()?;
            Some(RecordContent::PartialResult(rest.parse().ok()?))
        }
        "trash" => garbage::parse(key, value).map(RecordContent::Garbage),
        "change" => ChangeNote::parse(key, value).map(RecordContent::Change),
        "upload" => {
            let UploadV1 { path, .. } = serde_json::from_slice(value).ok()?;
            Some(RecordContent::Upload(rest.split('/').next()?.parse().ok()?, path))
        }
        "unembedded" => of_document(key::UNEMBEDDED).map(RecordContent::Unembedded),
        "arrival" | "content-guard" | "forgotten-task" | "generation" | "simhash-change"
        | "simhash-guard" | "task-change" => Some(RecordContent::Standalone),
        "text-claims" => text_claims::is_readable(&record).then_some(RecordContent::Standalone),
        "cosine-scale" | "spread" => is_cosine_scale(value).then_some(RecordContent::Standalone),
        _ => Some(RecordContent::Unknown(record)),
    }
}

/// The document and revision at the end of a key.
pub(crate) fn revision_of(rest: &str) -> Option<(DocId, u64)> {
    let (doc_id, revision) = rest.split_once('/')?;
    Some((doc_id.parse().ok()?, revision.parse().ok()?))
}
