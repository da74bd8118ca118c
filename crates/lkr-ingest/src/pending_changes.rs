//! Changes of live documents whose tags are set and whose record is not written yet.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lkr_catalog::{Catalog, ChangeNote, Stored, tags_of};
use lkr_domain::{DocId, Document};
use lkr_state::{KeyedMutex, Peers};
use lkr_vectors::{Condition, Filter, VectorStore};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind, Ports, Result, collections::set_tags_everywhere, gc::Gc};

/// The number of notes that are read at a time.
const BATCH: usize = 100;

/// A note of an earlier version, which names no process, is abandoned once it is this old.
const ABANDONED: Duration = Duration::from_secs(600);

/// The changes that this process has begun and not finished.
///
/// A change sets the tags of the points first and writes the record last. A stored note says that the tags of a document may
/// differ from its record; a change that fails leaves it to the janitor, which sets the tags from the record again.
#[derive(Debug)]
pub(crate) struct PendingChanges {
    catalog: Catalog,
    vectors: Arc<dyn VectorStore>,
    gc: Arc<Gc>,
    opened: OffsetDateTime,
    peers: Peers,
    /// Serialises the changes of one document in this process.
    pub(crate) locks: KeyedMutex,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// Changes in progress; only the operation that made them finishes them.
    in_progress: HashSet<ChangeNote>,
    /// Changes that failed; the janitor repairs them.
    failed: HashSet<ChangeNote>,
}

impl PendingChanges {
    pub(crate) fn new(ports: &Ports, gc: Arc<Gc>, opened: OffsetDateTime) -> Self {
        Self {
            catalog: ports.catalog.clone(),
            vectors: Arc::clone(&ports.vectors),
            gc,
            opened,
            peers: ports.peers.clone(),
            locks: KeyedMutex::default(),
            notes: Mutex::default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a note that the tags of a document's points may soon differ from its record.
    pub(crate) async fn begin(&self, doc_id: DocId) -> Result<PendingChange<'_>> {
        self.begin_with(ChangeNote::new(self.catalog.clock(), doc_id, self.peers.id())).await
    }

    /// Stores a note that a document's points and text are being copied to a revision.
    pub(crate) async fn begin_copy(&self, doc_id: DocId, revision: u64) -> Result<PendingChange<'_>> {
        let process = self.peers.id();
        self.begin_with(ChangeNote::of_copy(self.catalog.clock(), doc_id, revision, process)).await
    }

    async fn begin_with(&self, note: ChangeNote) -> Result<PendingChange<'_>> {
        let pending = PendingChange { note, changes: self, is_done: false };
        self.notes().in_progress.insert(pending.note.clone());
        self.catalog.note_change(&pending.note).await?;
        Ok(pending)
    }

    pub(crate) async fn set_tags(&self, document: &Document) -> Result<()> {
        let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
        set_tags_everywhere(&*self.vectors, &filter, &tags_of(document)).await
    }

    /// Repairs every change that failed in this process, and those that processes left which have ended.
    pub(crate) async fn repair_all(&self) -> Result<()> {
        let failed = self.notes().failed.clone();
        let mut running = None;
        let mut unrepaired = HashSet::new();
        let mut after = None;
        loop {
            let notes = self.catalog.unfinished_changes(after.as_ref(), BATCH).await?;
            if running.is_none() && !notes.is_empty() {
                running = Some(self.peers.running().await?);
            }
            let running = running.as_ref();
            let is_abandoned = |note: &ChangeNote| running.is_some_and(|now| self.is_abandoned(note, now));
            for note in notes.iter().filter(|note| failed.contains(note) || is_abandoned(note)) {
                // One document that cannot be repaired does not block the others.
                if let Err(error) = self.repair(note).await {
                    tracing::warn!(doc_id = %note.doc_id, %error, "cannot repair the tags of a document; will retry");
                    unrepaired.insert(note.clone());
                }
            }
            if notes.len() < BATCH {
                self.notes().failed.retain(|note| !failed.contains(note) || unrepaired.contains(note));
                return Ok(());
            }
            after = notes.into_iter().next_back();
        }
    }

    /// Whether the process that made the note has ended. `running` was read after the note.
    fn is_abandoned(&self, note: &ChangeNote, running: &BTreeSet<Uuid>) -> bool {
        if let Some(process) = note.process() {
            return !running.contains(&process);
        }
        let made_at = note.made_at();
        let is_older = made_at <= self.opened && !self.peers.is_shared();
        is_older || made_at + ABANDONED < self.catalog.now()
    }

    /// Sets the tags of a document's points from its record and deletes the note. The record is written unchanged, so that
    /// concurrent changes repeat theirs and cached searches expire.
    async fn repair(&self, note: &ChangeNote) -> Result<()> {
        let attempt = || async {
            let state = self.catalog.document_state(note.doc_id).await?;
            let Some(document) = &state.document else {
                return Ok(self.catalog.forget_change(note).await?);
            };
            self.set_tags(&document.value).await?;
            let discarded = note.discard_copy(Some(document.value.revision));
            let alongside = discarded.into_iter().collect();
            Ok(self.catalog.change(&state, &document.value, None, Some(note), alongside).await?)
        };
        self.catalog.retry_on_conflict("repair tags", attempt).await
    }
}

/// A change in progress whose note is stored. Dropped before it is done, it is left to the janitor.
pub(crate) struct PendingChange<'a> {
    pub(crate) note: ChangeNote,
    changes: &'a PendingChanges,
    is_done: bool,
}

impl PendingChange<'_> {
    /// The step that wrote the record has deleted the note.
    pub(crate) fn finish(mut self) {
        self.is_done = true;
    }

    /// After points were written with the tags of `before`: makes sure that they have the tags of the current record. A
    /// concurrent change repeats its attempt, because the record is written again.
    pub(crate) async fn confirm(self, before: &Stored<Document>) -> Result<()> {
        match self.changes.catalog.confirm(before, &self.note).await.map_err(Error::from) {
            Err(error) if error.kind() == ErrorKind::Conflict => self.revert().await,
            confirmed => {
                confirmed?;
                self.finish();
                Ok(())
            }
        }
    }

    /// Sets the tags from the record again, in place of those that were set for this change.
    pub(crate) async fn revert(self) -> Result<()> {
        self.changes.repair(&self.note).await?;
        self.finish();
        Ok(())
    }
}

impl Drop for PendingChange<'_> {
    fn drop(&mut self) {
        let mut notes = self.changes.notes();
        notes.in_progress.remove(&self.note);
        if !self.is_done {
            notes.failed.insert(self.note.clone());
            self.changes.gc.wake();
        }
    }
}
