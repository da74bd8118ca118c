use std::sync::Arc;

use lkr_domain::{DocId, Document, TaskId};
use lkr_state::{Record, StateStore, StateStoreExt, Write};

use crate::{Outbox, Result, Task, document, task_record::read_task};

/// The records over a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) outbox: Option<Arc<dyn Outbox>>,
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
        Self { state, outbox: None }
    }

    /// The same catalog, that tells `outbox` what happens.
    #[must_use]
    pub fn with_outbox(self, outbox: Arc<dyn Outbox>) -> Self {
        Self { outbox: Some(outbox), ..self }
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

/// The names of keys.
pub(crate) mod key {
    use lkr_domain::{DocId, TaskId, hex};
    use sha2::{Digest, Sha256};

    use crate::TaskSubject;

    pub(crate) const GENERATION: &str = "generation";
    pub(crate) const DOCUMENTS: &str = "doc/";
    pub(crate) const TASKS: &str = "task/";
    pub(crate) const TRASH: &str = "trash/";
    pub(crate) const CHANGES: &str = "change/";
    pub(crate) const UPLOADS: &str = "upload/";

    /// The version of what is stored.
    pub(crate) const VERSION: &str = "version";

    /// That documents may lack fingerprints.
    pub(crate) const UNPRINTED: &str = "unprinted";

    pub(crate) const ACTIVE: &str = "active/";
    pub(crate) const HELD: &str = "held/";
    pub(crate) const UNEMBEDDED: &str = "unembedded/";

    /// The model of a change of the model that was cancelled.
    pub(crate) const DECLINED: &str = "declined-model";

    /// How far a model's cosines spread.
    pub(crate) fn spread(model: &str) -> String {
        format!("spread/{}", hex(&Sha256::digest(model)))
    }

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

    /// The unfinished task of a document, or of a slot.
    pub(crate) fn active(subject: TaskSubject) -> String {
        format!("{ACTIVE}{}", subject.record_id())
    }

    /// What a failed task left for its next try.
    pub(crate) fn held(id: DocId, revision: u64) -> String {
        format!("{}{revision}", held_of(id))
    }

    pub(crate) fn held_of(id: DocId) -> String {
        format!("{HELD}{id}/")
    }

    /// The gold set of a task.
    pub(crate) fn gold(id: TaskId) -> String {
        format!("gold/{id}")
    }

    /// What was changed of a document since a replacement was accepted that makes `revision`.
    pub(crate) fn amendment(id: DocId, revision: u64) -> String {
        format!("amend/{id}/{revision}")
    }

    /// That a document has this text, by the digest of its normal form.
    pub(crate) fn content(sha256: &str, id: DocId) -> String {
        format!("{}{id}", contents_of(sha256))
    }

    pub(crate) fn contents_of(sha256: &str) -> String {
        format!("content/{sha256}/")
    }

    /// That somebody decided upon this text: two who decide at once exclude each other.
    pub(crate) fn content_guard(sha256: &str) -> String {
        format!("content-guard/{sha256}")
    }

    pub(crate) const SIMHASHES: &str = "simhash/";

    pub(crate) fn simhash(id: DocId) -> String {
        format!("{SIMHASHES}{id}")
    }

    /// The document that an account's upserts of a source are about.
    pub(crate) fn upsert(source: &str, owner: &str) -> String {
        let digest = |text: &str| hex(&Sha256::digest(text));
        format!("upsert/{}/{}", digest(source), digest(owner))
    }

    /// The tasks that were accepted under an idempotency key.
    pub(crate) fn idempotency(account: &str, endpoint: &str, key: &str) -> String {
        let digest = hex(&Sha256::digest(format!("{account}\0{endpoint}\0{key}")));
        format!("idempotency/{digest}")
    }

    /// An original that is being stored for a document that is not accepted yet.
    pub(crate) fn upload(id: DocId, path: &str) -> String {
        let digest = hex(&Sha256::digest(path));
        format!("{UPLOADS}{id}/{digest}")
    }

    /// A revision whose points and text are to be removed.
    pub(crate) fn garbage(id: DocId, revision: u64) -> String {
        format!("{TRASH}{id}/{revision}")
    }
}
