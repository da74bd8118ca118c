//! Changes of a live document's record that leave its text and vectors as they are.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, Order, Write};
use uuid::Uuid;

use crate::{Catalog, Result, Stored, catalog::key, document};

/// That the tags of a document's points are being changed before its record is. It goes in the step that changes the
/// record; one that a crash leaves behind says whose tags must be set anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNote {
    /// The document.
    pub doc_id: DocId,
    key: String,
}

impl ChangeNote {
    /// A note of its own about a document.
    #[must_use]
    pub fn new(doc_id: DocId) -> Self {
        Self { doc_id, key: format!("{}{doc_id}/{}", key::CHANGES, Uuid::now_v7().simple()) }
    }
}

impl Catalog {
    /// Notes that a document's points are about to get other tags than its record tells; again, where that was noted
    /// before.
    pub async fn note_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::put(note.key.clone(), Expect::Any, Vec::new())]).await?)
    }

    /// Changes the record of a live document: what searches and listings show from when this answers. The note, if
    /// any, goes with it; `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` where the record changed since it was read.
    pub async fn change(
        &self,
        before: &Stored<Document>,
        after: &Document,
        note: Option<&ChangeNote>,
        alongside: Vec<Write>,
    ) -> Result<()> {
        let own = [
            Write::put(
                key::document(after.doc_id),
                Expect::Version(before.version),
                document::encode(after)?,
            ),
            Write::increment(key::GENERATION),
        ];
        let note = note.map(|note| Write::delete(note.key.clone(), Expect::Any));
        Ok(self.state.apply(own.into_iter().chain(note).chain(alongside).collect()).await?)
    }

    /// Writes the record of a live document as it is, so that changes that were made upon an earlier reading fail.
    ///
    /// # Errors
    /// `Conflict` where the record changed since it was read.
    pub async fn touch(&self, document: &Stored<Document>) -> Result<()> {
        let key = key::document(document.value.doc_id);
        let put = Write::put(key, Expect::Version(document.version), document::encode(&document.value)?);
        Ok(self.state.apply(vec![put]).await?)
    }

    /// Changes that were begun and not ended, at most `limit` beyond `after`.
    pub async fn unfinished_changes(
        &self,
        after: Option<&ChangeNote>,
        limit: usize,
    ) -> Result<Vec<ChangeNote>> {
        let after = after.map(|note| note.key.as_str());
        let records = self.state.scan(key::CHANGES, after, Order::Ascending, limit).await?;
        let note = |key: String| {
            let (doc_id, _) = key.strip_prefix(key::CHANGES)?.split_once('/')?;
            Some(ChangeNote { doc_id: doc_id.parse().ok()?, key })
        };
        Ok(records.into_iter().filter_map(|(key, _)| note(key)).collect())
    }

    /// Forgets a change that came to nothing.
    pub async fn forget_change(&self, note: &ChangeNote) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(note.key.clone(), Expect::Any)]).await?)
    }
}
