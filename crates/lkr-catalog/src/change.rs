//! Changes of a live document's record that leave its text and vectors as they are.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, ScanOrder, Write};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Catalog, DocumentChange, DocumentState, Result, Stored, document, key};

/// That the tags of a document's points are being changed before its record is. It goes in the step that changes the
/// record; one that a crash leaves behind says whose tags must be set anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangeNote {
    /// The document.
    pub doc_id: DocId,
    /// What tells it from others, and when it was made.
    id: Uuid,
}

impl ChangeNote {
    /// A note of its own about a document.
    #[must_use]
    pub fn new(doc_id: DocId) -> Self {
        Self { doc_id, id: Uuid::now_v7() }
    }

    /// When it was made, to the millisecond.
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
    /// Notes that a document's points are about to get other tags than its record tells.
    pub async fn note_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::put(note.key(), Expect::Any, Vec::new())]).await?)
    }

    /// Changes the record of a live document: what searches and listings show from when this answers. A replacement
    /// under way takes over what `amends` says. The note, if any, goes with it; `alongside` is written in the same
    /// step.
    ///
    /// # Errors
    /// `Conflict` where what there is of the document changed since it was read.
    pub async fn change(
        &self,
        before: &DocumentState,
        after: &Document,
        amends: Option<&DocumentChange>,
        note: Option<&ChangeNote>,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let expect =
            before.document.as_ref().map_or(Expect::Absent, |before| Expect::Version(before.version));
        let mut writes = alongside;
        writes.push(Write::put(key::document(after.doc_id), expect, document::encode(after)?));
        writes.push(Write::increment(key::GENERATION));
        writes.extend(note.map(|note| Write::delete(note.key(), Expect::Any)));
        if let Some(change) = amends {
            writes.extend(before.amend(change)?);
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Writes the record of a live document as it is, so that changes that were made upon an earlier reading fail, and
    /// takes the note away.
    ///
    /// # Errors
    /// `Conflict` where the record changed since it was read.
    pub async fn confirm(&self, document: &Stored<Document>, note: &ChangeNote) -> Result<()> {
        let key = key::document(document.value.doc_id);
        let put = Write::put(key, Expect::Version(document.version), document::encode(&document.value)?);
        Ok(self.state.apply(vec![put, Write::delete(note.key(), Expect::Any)]).await?)
    }

    /// Changes that were begun and not ended, at most `limit` beyond `after`.
    pub async fn unfinished_changes(
        &self,
        after: Option<&ChangeNote>,
        limit: usize,
    ) -> Result<Vec<ChangeNote>> {
        let after = after.map(ChangeNote::key);
        let records = self.state.scan(key::CHANGES, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, _)| ChangeNote::parse(key)).collect())
    }

    /// Forgets a change that came to nothing.
    pub async fn forget_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(note.key(), Expect::Any)]).await?)
    }
}
