//! Whose fingerprints changed lately. Each step that changes the fingerprint of a live document also puts a mark under the
//! document's id, which expires soon, so that every process can keep the fingerprints in memory.

use std::time::Duration;

use lkr_domain::{DocId, SpaceName};
use lkr_state::{Expect, ScanOrder, Write};

use crate::{Catalog, Result, key, text_index::decode_simhash};

/// How long a mark is kept. Who reads the changes at least this often misses none.
pub const FINGERPRINT_CHANGE_KEPT: Duration = Duration::from_secs(60);

/// Marks per scan.
const BATCH: usize = 1_000;

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
        let (mut changes, mut after) = (Vec::new(), None::<String>);
        loop {
            let page =
                self.state.scan(key::SIMHASH_CHANGES, after.as_deref(), ScanOrder::Ascending, BATCH).await?;
            let change = |(key, record): &(String, lkr_state::Record)| {
                let doc_id = key.strip_prefix(key::SIMHASH_CHANGES)?.parse().ok()?;
                Some(FingerprintChange { doc_id, version: record.version })
            };
            changes.extend(page.iter().filter_map(change));
            if page.len() < BATCH {
                return Ok(changes);
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
        }
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
