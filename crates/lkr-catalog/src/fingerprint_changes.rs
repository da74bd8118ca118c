//! Whose fingerprints changed lately. Each step that changes the fingerprint of a live document also puts a mark under the
//! document's id, which expires soon, so that every process can keep the fingerprints in memory.

use std::time::Duration;

use lkr_domain::{DocId, SpaceName};
use lkr_state::{Expect, Write};

use crate::{Catalog, Result, key, text_index::decode_simhash};

/// How long a mark is kept. Who reads the changes at least this often misses none.
pub const FINGERPRINT_CHANGE_KEPT: Duration = Duration::from_secs(60);

/// That the fingerprint of a document changed, or the document was deleted or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintChange {
    /// The document.
    pub doc_id: DocId,
    /// Grows with each change of the document's fingerprint.
    pub version: u64,
}

/// The mark of a document.
pub(crate) fn put(doc_id: DocId) -> Write {
    Write::put_for(key::simhash_change(doc_id), Expect::Any, Vec::new(), FINGERPRINT_CHANGE_KEPT)
}

impl Catalog {
    /// The last change of each document whose fingerprint changed within [`FINGERPRINT_CHANGE_KEPT`].
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn fingerprint_changes(&self) -> Result<Vec<FingerprintChange>> {
        let marks = self.marks(key::SIMHASH_CHANGES).await?;
        Ok(marks.into_iter().map(|(doc_id, version)| FingerprintChange { doc_id, version }).collect())
    }

    /// The spaces and fingerprints of documents, in the order of `ids`; `None` for those that have none now.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn simhashes_of(&self, ids: &[DocId]) -> Result<Vec<Option<(SpaceName, u64)>>> {
        let keys: Vec<_> = ids.iter().map(|&id| key::simhash(id)).collect();
        let records = self.state.get_many(&keys).await?;
        Ok(records.into_iter().map(|record| decode_simhash(&record?.value)).collect())
    }
}
