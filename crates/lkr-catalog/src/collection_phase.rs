//! How far the change of the embedding model is, and which documents were written meanwhile. All processes read these
//! records, so a process that writes points and the one that changes the model agree without knowing each other.

use lkr_domain::{DocId, TaskId};
use lkr_state::{Expect, Record, ScanOrder, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{ActiveTask, Catalog, Error, ErrorKind, Result, key};

/// How far the change of the embedding model is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectionPhase {
    /// No change is in progress.
    #[default]
    Idle,
    /// The collections of the next model are being filled; each published document is noted as an arrival.
    Filling,
    /// The last arrivals are being filled; nothing may be published.
    Draining,
    /// The aliases are being switched; nothing may be published, and the change cannot be cancelled.
    Switching,
}

impl CollectionPhase {
    /// Whether documents may be published.
    #[must_use]
    pub const fn allows_writes(self) -> bool {
        matches!(self, Self::Idle | Self::Filling)
    }
}

/// The collections of the four layers that the aliases name: the vector store switches aliases without a condition, so a switch of a
/// process that was stalled may take effect after a later one. The record says which one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCollections {
    /// What the names of the collections end with.
    pub suffix: String,
    /// The id and the dimensions of the model of their dense vectors; `None` if they have none.
    pub model: Option<(String, usize)>,
}

/// The record of the change of the embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionState {
    /// How far it is.
    pub phase: CollectionPhase,
    /// The number of changes that were completed. Points that were written before the last one are not in the live
    /// collections.
    pub switches: u64,
    /// The collections that the aliases name unless they are being switched; `None` if an earlier version, which did not record
    /// that, made the last change.
    pub live: Option<LiveCollections>,
    claim: Option<PhaseClaimV1>,
    version: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CollectionStateV1 {
    phase: CollectionPhase,
    switches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<PhaseClaimV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    live: Option<LiveCollections>,
}

/// Who began a phase. Several workers may be at work on one task: one that is stalled, and its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct PhaseClaimV1 {
    task_id: TaskId,
    /// The task's fencing token. A task that failed and is tried again has another one.
    token: u64,
    /// Drawn for each write of the record, so that a worker recognises its own.
    nonce: u64,
}

/// A document that was published while the collections of the next model were being filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The document. It may have been deleted since.
    pub doc_id: DocId,
    version: u64,
}

impl CollectionState {
    /// The writes that the publishing step of a document must contain: it fails if the phase changes, and while collections
    /// are being filled it notes the document.
    #[must_use]
    pub fn publishing(&self, doc_id: DocId) -> Vec<Write> {
        let unchanged = Write::check(key::COLLECTIONS, self.expectation());
        let arrival = (self.phase == CollectionPhase::Filling)
            .then(|| Write::put(key::arrival(doc_id), Expect::Any, Vec::new()));
        [unchanged].into_iter().chain(arrival).collect()
    }

    /// The write that begins another phase. It fails if the phase has changed since it was read.
    ///
    /// # Errors
    /// `Corrupt` if the record cannot be encoded.
    pub fn begin(&self, phase: CollectionPhase) -> Result<Write> {
        self.put(phase, self.switches, None, self.live.clone())
    }

    /// Whether this task, with this fencing token, began the phase.
    #[must_use]
    pub fn is_of(&self, active: ActiveTask) -> bool {
        self.claim.is_some_and(|claim| (claim.task_id, claim.token) == (active.task_id, active.version))
    }

    /// The write that completes a change to these collections. It fails if the phase has changed since it was read.
    ///
    /// # Errors
    /// `Corrupt` if the record cannot be encoded.
    pub fn complete(&self, live: LiveCollections) -> Result<Write> {
        self.end(Some(live))
    }

    fn end(&self, live: Option<LiveCollections>) -> Result<Write> {
        self.put(CollectionPhase::Idle, self.switches.saturating_add(1), None, live)
    }

    fn put(
        &self,
        phase: CollectionPhase,
        switches: u64,
        claim: Option<PhaseClaimV1>,
        live: Option<LiveCollections>,
    ) -> Result<Write> {
        let record = serde_json::to_vec(&CollectionStateV1 { phase, switches, claim, live });
        let record = record.map_err(|e| Error::corrupt("write phase of collections", e))?;
        Ok(Write::put(key::COLLECTIONS, self.expectation(), record))
    }

    fn expectation(&self) -> Expect {
        self.version.map_or(Expect::Absent, Expect::Version)
    }

    fn read(record: Option<&Record>) -> Result<Self> {
        let Some(record) = record else {
            let phase = CollectionPhase::Idle;
            return Ok(Self { phase, switches: 0, live: None, claim: None, version: None });
        };
        let CollectionStateV1 { phase, switches, claim, live } = serde_json::from_slice(&record.value)
            .map_err(|e| Error::corrupt("read phase of collections", e))?;
        Ok(Self { phase, switches, live, claim, version: Some(record.version) })
    }
}

impl Catalog {
    /// How far the change of the embedding model is.
    ///
    /// # Errors
    /// Those of the state store; `Corrupt` if the record cannot be read.
    pub async fn collection_state(&self) -> Result<CollectionState> {
        CollectionState::read(self.state.get(key::COLLECTIONS).await?.as_ref())
    }

    /// Begins another phase of the change that a task makes. Returns the record as it was written: the worker's next phase
    /// must follow it, so that a worker whose successor began a phase can begin none, and cannot end the task.
    ///
    /// # Errors
    /// `Conflict` if the phase changed since it was read, or the task is not active.
    pub async fn begin_phase(
        &self,
        before: CollectionState,
        phase: CollectionPhase,
        active: ActiveTask,
    ) -> Result<CollectionState> {
        let (_, nonce) = self.clock().new_uuid().as_u64_pair();
        let claim = Some(PhaseClaimV1 { task_id: active.task_id, token: active.version, nonce });
        let begin = before.put(phase, before.switches, claim, before.live.clone())?;
        self.state.apply(vec![begin, active.check()]).await?;
        // The store does not tell the version that it wrote.
        let written = self.collection_state().await?;
        if written.claim != claim {
            let reason = "another worker began a phase";
            return Err(Error::new(ErrorKind::Conflict, "begin phase of collections", reason));
        }
        Ok(written)
    }

    /// Ends a change whose task is not active any more. Points that were written meanwhile must be written again, because the
    /// aliases may have been switched.
    ///
    /// # Errors
    /// `Conflict` if the phase changed since it was read.
    pub async fn end_phase(&self, before: CollectionState) -> Result<()> {
        Ok(self.state.apply(vec![before.end(before.live.clone())?]).await?)
    }

    /// Records the first collections of a knowledge base, unless some are recorded. Returns those that are recorded: of processes
    /// that start on new stores at once, all create the same.
    ///
    /// # Errors
    /// `Contention` if the record changed during every attempt.
    pub async fn record_first_collections(&self, first: &LiveCollections) -> Result<LiveCollections> {
        let attempt = || async {
            let before = self.collection_state().await?;
            if let Some(live) = before.live {
                return Ok(live);
            }
            let put = before.put(before.phase, before.switches, before.claim, Some(first.clone()))?;
            self.state.apply(vec![put]).await?;
            Ok(first.clone())
        };
        self.retry_on_conflict("record the first collections", attempt).await
    }

    /// Records that the collections that the aliases should name are gone.
    ///
    /// # Errors
    /// `Conflict` if the record changed since it was read.
    pub async fn forget_live_collections(&self, before: &CollectionState) -> Result<()> {
        let put = before.put(before.phase, before.switches, before.claim, None)?;
        Ok(self.state.apply(vec![put]).await?)
    }

    /// Up to `limit` documents that were published while collections were being filled.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn arrivals(&self, limit: usize) -> Result<Vec<Arrival>> {
        let records = self.state.scan(key::ARRIVALS, None, ScanOrder::Ascending, limit).await?;
        let arrival = |(key, record): &(String, Record)| {
            let doc_id = key.strip_prefix(key::ARRIVALS)?.parse().ok()?;
            Some(Arrival { doc_id, version: record.version })
        };
        Ok(records.iter().filter_map(arrival).collect())
    }

    /// Removes a note, unless the document was published again since it was read.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn forget_arrival(&self, arrival: Arrival) -> Result<()> {
        let delete = Write::delete(key::arrival(arrival.doc_id), Expect::Version(arrival.version));
        match self.state.apply(vec![delete]).await {
            Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => Ok(()),
            applied => Ok(applied?),
        }
    }
}

/// Whether the record of the phase can be read.
pub(crate) fn is_collection_state(record: &Record) -> bool {
    CollectionState::read(Some(record)).is_ok()
}
