//! Records of documents of which little was decoded.

use bytes::Bytes;
use lkr_domain::{DocId, Document, SpaceName};

use crate::{DocumentTitle, Result, document};

/// The record of a live document. Only what decides whether a search shows the document was decoded: a search looks at
/// the records of hundreds of documents and shows ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRecord {
    doc_id: DocId,
    space: SpaceName,
    revision: u64,
    value: Bytes,
}

impl DocumentRecord {
    pub(crate) fn new(doc_id: DocId, value: Bytes) -> Result<Self> {
        let (space, revision) = document::decode_head(&value)?;
        Ok(Self { doc_id, space, revision, value })
    }

    /// The size of the stored record.
    pub(crate) const fn bytes(&self) -> usize {
        self.value.len()
    }

    /// The space that contains the document.
    #[must_use]
    pub const fn space(&self) -> &SpaceName {
        &self.space
    }

    /// The revision whose points and text are live.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The title and the language.
    ///
    /// # Errors
    /// `Corrupt` if the record is damaged.
    pub fn title(&self) -> Result<DocumentTitle> {
        document::decode_title(&self.value)
    }

    /// The whole record.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged.
    pub fn document(&self) -> Result<Document> {
        document::decode(self.doc_id, &self.value)
    }
}
