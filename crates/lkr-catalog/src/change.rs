//! Changes to a live document's record that leave its text and vectors unchanged.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, ScanOrder, Write};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Catalog, DocumentChange, DocumentState, Result, Stored, document, key};

/// A note that the tags of a document's points are being changed. It is written before the tags, and removed by the
/// step that changes the record. If a crash leaves it behind, the next start sets the tags again from the record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangeNote {
    /// The document.
    pub doc_id: DocId,
    /// A unique id that contains the time of creation.
    id: Uuid,
}

impl ChangeNote {
    /// A new note about a document.
    #[must_use]
    pub fn new(doc_id: DocId) -> Self {
        Self { doc_id, id: Uuid::now_v7() }
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

    pub(crate) fn parse(key: &str) -> Option<Self> {
        let (doc_id, id) = key.strip_prefix(key::CHANGES)?.split_once('/')?;
        Some(Self { doc_id: doc_id.parse().ok()?, id: id.parse().ok()? })
    }
}

impl Catalog {
    /// Records that a document's points are about to get tags that differ from its record.
    pub async fn note_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::put(note.key(), Expect::Any, Vec::new())]).await?)
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
        writes.extend(Self::invalidate_answers_of(&after.space));
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

    /// Up to `limit` notes of unfinished changes, beyond `after`.
    pub async fn unfinished_changes(
        &self,
        after: Option<&ChangeNote>,
        limit: usize,
    ) -> Result<Vec<ChangeNote>> {
        let after = after.map(ChangeNote::key);
        let records = self.state.scan(key::CHANGES, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, _)| ChangeNote::parse(key)).collect())
    }

    /// Removes the note of a change that did not happen.
    pub async fn forget_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(note.key(), Expect::Any)]).await?)
    }
}
