//! Every record by its key, for those who look whether all of them belong together.

use lkr_domain::{DocId, Document, TaskId};
use lkr_state::{Record, ScanOrder, Write};

use crate::{
    Catalog, ChangeNote, DocumentChange, Garbage, Result, Task,
    accept::RememberedV1,
    catalog::key,
    document,
    document_state::{FailedAttemptV1, read_held},
    embedding::is_spread,
    garbage,
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
    pub entry: Option<Entry>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
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
    Alone,
    /// What the catalog knows nothing of: the record as it is.
    Foreign(Record),
}

impl Catalog {
    /// Up to `limit` records beyond the key `after`, of all kinds, in the order of their keys.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn scan_records(&self, after: Option<&str>, limit: usize) -> Result<Vec<ScannedRecord>> {
        let records = self.state.scan("", after, ScanOrder::Ascending, limit).await?;
        let read = |(key, record): (String, Record)| {
            let version = record.version;
            ScannedRecord { entry: entry(&key, record), key, version }
        };
        Ok(records.into_iter().map(read).collect())
    }

    /// Removes a record that says what is not so, unless it changed since it was surveyed.
    ///
    /// # Errors
    /// `Conflict` where it changed.
    pub async fn delete_if_unchanged(&self, surveyed: &ScannedRecord) -> Result<()> {
        let expect = lkr_state::Expect::Version(surveyed.version);
        Ok(self.state.apply(vec![Write::delete(surveyed.key.clone(), expect)]).await?)
    }

    /// A record as it is stored.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn raw(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.state.get_many(&[key.to_owned()]).await?.into_iter().next().flatten())
    }

    /// Puts a live document into the indexes of texts anew.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn index(&self, document: &Document) -> Result<()> {
        Ok(self.state.apply(crate::finish::index_anew(None, document)).await?)
    }

    /// Whether the indexes of texts hold a document as its record says.
    ///
    /// # Errors
    /// Those of the state store.
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
    /// Those of the state store.
    pub async fn is_unembedded(&self, doc_id: DocId) -> Result<bool> {
        Ok(self.raw(&key::unembedded(doc_id)).await?.is_some())
    }

    /// Records a task as unfinished again that its document has no key for, so that it ends.
    ///
    /// # Errors
    /// `Conflict` where another took its place.
    pub async fn resume(&self, task: &Task) -> Result<()> {
        let expect = lkr_state::Expect::Absent;
        let active = Write::put(key::active(task.subject), expect, task.task_id.to_string());
        Ok(self.state.apply(vec![active]).await?)
    }
}

/// What a record says; `None` where it cannot be read.
fn entry(key: &str, record: Record) -> Option<Entry> {
    let value = &record.value;
    let text = || str::from_utf8(value).ok();
    let of_document = |prefix: &str| key.strip_prefix(prefix)?.parse::<DocId>().ok();
    let Some((kind, rest)) = key.split_once('/') else {
        let own = [key::GENERATION, key::VERSION, key::UNPRINTED, key::DECLINED].contains(&key);
        return Some(if own { Entry::Alone } else { Entry::Foreign(record) });
    };
    match kind {
        "doc" => {
            let doc_id = of_document(key::DOCUMENTS)?;
            document::decode(doc_id, value).ok().map(|document| Entry::Document(Box::new(document)))
        }
        "task" => {
            let task = read_task(&record).ok().filter(|task| task.task_id.to_string() == rest)?;
            Some(Entry::Task(Box::new(task)))
        }
        "active" => Some(Entry::ActiveTask(rest.parse().ok()?, text()?.parse().ok()?)),
        "held" => {
            let (doc_id, revision) = revision_of(rest)?;
            let FailedAttemptV1 { task_id, original } = read_held(value).ok()?;
            Some(Entry::FailedAttempt(doc_id, revision, task_id, original))
        }
        "amend" => {
            let (doc_id, revision) = revision_of(rest)?;
            serde_json::from_slice::<DocumentChange>(value).ok()?;
            Some(Entry::ConcurrentEdit(doc_id, revision))
        }
        "content" => {
            let (sha256, doc_id) = rest.split_once('/')?;
            Some(Entry::Content(sha256.to_owned(), doc_id.parse().ok()?))
        }
        "simhash" => Some(Entry::Simhash(rest.parse().ok()?, u64::from_str_radix(text()?, 16).ok()?)),
        "upsert" => Some(Entry::Upsert(text()?.parse().ok()?)),
        "idempotency" => {
            let RememberedV1 { tasks } = serde_json::from_slice(value).ok()?;
            Some(Entry::Idempotency(tasks))
        }
        "gold" => Some(Entry::Gold(rest.parse().ok()?)),
        "trash" => garbage::parse(key, value).map(Entry::Garbage),
        "change" => ChangeNote::parse(key).map(Entry::Change),
        "upload" => {
            let UploadV1 { path, .. } = serde_json::from_slice(value).ok()?;
            Some(Entry::Upload(rest.split('/').next()?.parse().ok()?, path))
        }
        "unembedded" => of_document(key::UNEMBEDDED).map(Entry::Unembedded),
        "content-guard" => Some(Entry::Alone),
        "spread" => is_spread(value).then_some(Entry::Alone),
        _ => Some(Entry::Foreign(record)),
    }
}

/// The document and revision that the end of a key names.
pub(crate) fn revision_of(rest: &str) -> Option<(DocId, u64)> {
    let (doc_id, revision) = rest.split_once('/')?;
    Some((doc_id.parse().ok()?, revision.parse().ok()?))
}
