use std::sync::Arc;

use lkr_domain::{Clock, DocId, Document, Scope, SpaceName, TaskId};
use lkr_state::{ConflictError, Record, StateStore, StateStoreExt, StoreClock, Write};
use time::OffsetDateTime;

use crate::{
    DocumentRecord, Outbox, Result, Task, document, key,
    record_cache::{ReadRecord, RecordCache},
    task_record::read_task,
};

/// The records of documents and tasks in a state store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) outbox: Option<Arc<dyn Outbox>>,
    clock: Arc<dyn Clock>,
    records: Arc<RecordCache>,
}

/// A value with the version of its record.
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
        let clock = Arc::new(StoreClock::new(Arc::clone(&state)));
        Self { state, outbox: None, clock, records: Arc::default() }
    }

    /// The same catalog with an outbox that reports its steps.
    #[must_use]
    pub fn with_outbox(self, outbox: Arc<dyn Outbox>) -> Self {
        Self { outbox: Some(outbox), ..self }
    }

    /// The same catalog with another clock than the store's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Where the times and ids of records come from.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Repeats `attempt` while it loses a compare-and-set, see [`lkr_state::retry_on_conflict`].
    ///
    /// # Errors
    /// The first error that is not a conflict; contention after the last attempt.
    pub async fn retry_on_conflict<T, E, F>(
        &self,
        operation: &'static str,
        attempt: impl FnMut() -> F,
    ) -> std::result::Result<T, E>
    where
        E: ConflictError,
        F: Future<Output = std::result::Result<T, E>>,
    {
        lkr_state::retry_on_conflict(&*self.state, operation, attempt).await
    }

    /// The record of a live document.
    pub async fn document(&self, doc_id: DocId) -> Result<Option<Stored<Document>>> {
        let record = self.state.get(&key::document(doc_id)).await?;
        record.map(|record| read_document(doc_id, &record)).transpose()
    }

    /// The records of several documents, in the order of `ids`; `None` for those that are not live.
    pub async fn documents(&self, ids: &[DocId]) -> Result<Vec<Option<Document>>> {
        let keys: Vec<_> = ids.iter().map(|&id| key::document(id)).collect();
        let records = ids.iter().zip(self.state.get_many(&keys).await?);
        records.map(|(&id, record)| record.map(|r| document::decode(id, &r.value)).transpose()).collect()
    }

    /// The same records, hardly decoded. All are of one state of the store, not earlier than the call; those that were read a short
    /// time ago are not read again, unless a document changed since then.
    pub async fn document_records(&self, ids: &[DocId]) -> Result<Vec<Option<Arc<DocumentRecord>>>> {
        if self.records.is_empty() {
            return Ok(self.read_document_records(ids).await?.1);
        }
        let generation = self.generation(&Scope::All).await?;
        let known = self.records.at(generation, ids);
        let unknown: Vec<DocId> =
            ids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(&id, _)| id).collect();
        if unknown.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        let (read_at, read) = self.read_document_records(&unknown).await?;
        if read_at != generation && unknown.len() < ids.len() {
            return Ok(self.read_document_records(ids).await?.1);
        }
        let mut read = read.into_iter();
        Ok(known.into_iter().map(|known| known.unwrap_or_else(|| read.next().flatten())).collect())
    }

    /// Reads records, and the generation of which they are.
    async fn read_document_records(&self, ids: &[DocId]) -> Result<(u64, Vec<ReadRecord>)> {
        let keys = ids.iter().map(|&id| key::document(id)).chain([key::GENERATION.to_owned()]);
        let mut values = self.state.get_many(&keys.collect::<Vec<_>>()).await?;
        let generation = values.pop().flatten().as_ref().map_or(0, Record::as_counter);
        let read = |(&id, record): (&DocId, Option<Record>)| -> Result<ReadRecord> {
            record.map(|record| DocumentRecord::new(id, record.value).map(Arc::new)).transpose()
        };
        let records = ids.iter().zip(values).map(read).collect::<Result<Vec<_>>>()?;
        self.records.keep(generation, ids.iter().copied().zip(&records));
        Ok((generation, records))
    }

    /// A task's record.
    pub async fn task(&self, task_id: TaskId) -> Result<Option<Task>> {
        let record = self.state.get(&key::task(task_id)).await?;
        record.map(|record| read_task(&record)).transpose()
    }

    /// Those of several tasks that exist, in the order of `ids`.
    pub async fn tasks_with(&self, ids: &[TaskId]) -> Result<Vec<Task>> {
        let keys: Vec<_> = ids.iter().map(|&id| key::task(id)).collect();
        self.state.get_many(&keys).await?.iter().flatten().map(read_task).collect()
    }

    /// The writes that invalidate all cached answers, for changes to something else than documents that searches depend
    /// on.
    #[must_use]
    pub fn invalidate_cached_answers() -> [Write; 2] {
        [Write::increment(key::GENERATION), Write::increment(key::CORPUS_GENERATION)]
    }

    /// The writes that invalidate the cached answers of a space's searches.
    pub(crate) fn invalidate_answers_of(space: &SpaceName) -> [Write; 2] {
        [Write::increment(key::GENERATION), Write::increment(key::space_generation(space))]
    }

    /// A number that grows with every change that searches of the scope can show. An answer that was computed at an
    /// earlier generation may be stale. Changes in other spaces do not affect it.
    pub async fn generation(&self, scope: &Scope) -> Result<u64> {
        let keys = match scope {
            Scope::All => vec![key::GENERATION.to_owned()],
            Scope::Spaces(spaces) => {
                let spaces = spaces.iter().map(key::space_generation);
                spaces.chain([key::CORPUS_GENERATION.to_owned()]).collect()
            }
        };
        let counters = self.state.get_many(&keys).await?;
        Ok(counters.iter().flatten().map(Record::as_counter).fold(0, u64::wrapping_add))
    }

    pub(crate) fn task_ended_events(&self, task: &Task) -> Vec<Write> {
        self.outbox.as_ref().map(|outbox| outbox.task_ended(task)).unwrap_or_default()
    }

    pub(crate) fn document_deleted_events(&self, doc_id: DocId, space: &SpaceName) -> Vec<Write> {
        let outbox = self.outbox.as_ref();
        outbox.map(|outbox| outbox.document_deleted(doc_id, space, self.now())).unwrap_or_default()
    }
}

pub(crate) fn read_document(doc_id: DocId, record: &Record) -> Result<Stored<Document>> {
    Ok(Stored { value: document::decode(doc_id, &record.value)?, version: record.version })
}
