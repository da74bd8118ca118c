//! Changes to a live document's record that leave its text and vectors unchanged.

use std::collections::BTreeSet;

use lkr_domain::{Clock, DocId, Document};
use lkr_state::{Expect, ScanOrder, Write};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    Catalog, DocumentChange, DocumentState, Garbage, Result, Stored, document, finish::reindex, key,
};

/// A note that the tags of a document's points are being changed. It is written before the tags, and removed by the
/// step that changes the record. If a crash leaves it behind, the next start sets the tags again from the record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangeNote {
    /// The document.
    pub doc_id: DocId,
    /// A unique id that contains the time of creation.
    id: Uuid,
    /// The revision to which the document's points are being copied, if they are.
    copy: Option<u64>,
    /// The process that makes the change; `None` for notes of earlier versions.
    process: Option<Uuid>,
}

impl ChangeNote {
    /// A new note about a document, by a process.
    #[must_use]
    pub fn new(clock: &dyn Clock, doc_id: DocId, process: Uuid) -> Self {
        Self { doc_id, id: clock.new_uuid(), copy: None, process: Some(process) }
    }

    /// A new note that the points and the text of a document are being copied to a revision.
    #[must_use]
    pub fn of_copy(clock: &dyn Clock, doc_id: DocId, revision: u64, process: Uuid) -> Self {
        Self { copy: Some(revision), ..Self::new(clock, doc_id, process) }
    }

    /// The process that makes the change; `None` for notes of earlier versions.
    #[must_use]
    pub const fn process(&self) -> Option<Uuid> {
        self.process
    }

    /// The revision to which the document's points are being copied, if they are.
    #[must_use]
    pub const fn copy_revision(&self) -> Option<u64> {
        self.copy
    }

    /// The write that makes the copy garbage, unless it is live.
    #[must_use]
    pub fn discard_copy(&self, live: Option<u64>) -> Option<Write> {
        let revision = self.copy.filter(|copy| live != Some(*copy))?;
        Some(Garbage { doc_id: self.doc_id, revision, original: None }.put())
    }

    /// The time of creation, to the millisecond.
    #[must_use]
    pub fn made_at(&self) -> OffsetDateTime {
        let (seconds, nanos) = self.id.get_timestamp().map_or((0, 0), |time| time.to_unix());
        let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    fn key(&self) -> String {
        format!("{}{}/{}", key::CHANGES, self.doc_id, self.id.simple())
    }

    /// The revision of the copy if there is one, then `@` and the process.
    fn value(&self) -> String {
        let copy = self.copy.map(|revision| revision.to_string()).unwrap_or_default();
        let process = self.process.map(|process| format!("@{}", process.simple())).unwrap_or_default();
        copy + &process
    }

    pub(crate) fn parse(key: &str, value: &[u8]) -> Option<Self> {
        let (doc_id, id) = key.strip_prefix(key::CHANGES)?.split_once('/')?;
        let value = std::str::from_utf8(value).ok()?;
        let (copy, process) = match value.split_once('@') {
            Some((copy, process)) => (copy, Some(process.parse().ok()?)),
            None => (value, None),
        };
        let copy = if copy.is_empty() { None } else { Some(copy.parse().ok()?) };
        Some(Self { doc_id: doc_id.parse().ok()?, id: id.parse().ok()?, copy, process })
    }
}

impl Catalog {
    /// Records that a document's points are about to get tags that differ from its record.
    pub async fn note_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::put(note.key(), Expect::Any, note.value())]).await?)
    }

    /// Changes the record of a live document. Searches and listings show the change once this returns.
    /// `for_replacement` is added to the concurrent edits of unfinished and failed replacements. The step also removes
    /// `note` and writes `alongside`.
    ///
    /// # Errors
    /// `Conflict` if the document's state changed since it was read.
    pub async fn change(
        &self,
        before: &DocumentState,
        after: &Document,
        for_replacement: Option<&DocumentChange>,
        note: Option<&ChangeNote>,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let expect =
            before.document.as_ref().map_or(Expect::Absent, |before| Expect::Version(before.version));
        let mut writes = alongside;
        writes.push(Write::put(key::document(after.doc_id), expect, document::encode(after)?));
        writes.extend(self.visible_change(before.document.as_ref().map(|before| &before.value), after));
        writes.extend(note.map(|note| Write::delete(note.key(), Expect::Any)));
        if let Some(change) = for_replacement {
            writes.extend(before.add_concurrent_edit(change)?);
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Rewrites the record of a live document unchanged and removes the note. Changes that are based on an earlier read
    /// then fail with a conflict.
    ///
    /// # Errors
    /// `Conflict` if the record changed since it was read.
    pub async fn confirm(&self, document: &Stored<Document>, note: &ChangeNote) -> Result<()> {
        let key = key::document(document.value.doc_id);
        let put = Write::put(key, Expect::Version(document.version), document::encode(&document.value)?);
        Ok(self.state.apply(vec![put, Write::delete(note.key(), Expect::Any)]).await?)
    }

    /// Whether the tags of a document's points are being changed, or its points are being copied.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn is_changing(&self, doc_id: DocId) -> Result<bool> {
        let prefix = format!("{}{doc_id}/", key::CHANGES);
        Ok(!self.state.scan(&prefix, None, ScanOrder::Ascending, 1).await?.is_empty())
    }

    /// Whether points and text of a document are being copied to this revision.
    pub(crate) async fn is_copy(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        let prefix = format!("{}{doc_id}/", key::CHANGES);
        let notes = self.state.scan(&prefix, None, ScanOrder::Ascending, usize::MAX).await?;
        let mut notes = notes.iter().filter_map(|(key, record)| ChangeNote::parse(key, &record.value));
        Ok(notes.any(|note| note.copy == Some(revision)))
    }

    /// Up to `limit` notes of unfinished changes, beyond `after`.
    pub async fn unfinished_changes(
        &self,
        after: Option<&ChangeNote>,
        limit: usize,
    ) -> Result<Vec<ChangeNote>> {
        let after = after.map(ChangeNote::key);
        let records = self.state.scan(key::CHANGES, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, record)| ChangeNote::parse(key, &record.value)).collect())
    }

    /// The index entries and the generations that change with a record. If the points have a new revision, the earlier one
    /// becomes garbage; the original stays.
    fn visible_change(&self, before: Option<&Document>, after: &Document) -> Vec<Write> {
        let mut writes = reindex(before, after);
        writes.push(Write::increment(key::GENERATION));
        let spaces =
            BTreeSet::from_iter(before.map(|before| &before.space).into_iter().chain([&after.space]));
        writes.extend(spaces.into_iter().map(|space| Write::increment(key::space_generation(space))));
        let copied = before.filter(|before| before.revision != after.revision);
        let garbage = copied.map(|before| Garbage { original: None, ..Garbage::of_document(before) });
        writes.extend(garbage.map(|garbage| garbage.put()));
        writes
    }

    /// Removes the note of a change that did not happen, of a document that is no longer live.
    pub async fn forget_change(&self, note: &ChangeNote) -> Result<()> {
        let delete = Write::delete(note.key(), Expect::Any);
        Ok(self.state.apply(note.discard_copy(None).into_iter().chain([delete]).collect()).await?)
    }
}
