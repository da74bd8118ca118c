//! Documents by their texts.

use lkr_domain::DocId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use std::time::Duration;

use crate::{Catalog, Result, key};

/// How long a decision upon a text excludes others that were begun before it: far longer than one takes.
const GUARD_LIFETIME: Duration = Duration::from_secs(3600);

/// A decision that no document has a text: it fails where another one was made meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueText {
    guard: Write,
}

impl UniqueText {
    /// The write that the step needs which makes a document with the text visible.
    #[must_use]
    pub fn into_write(self) -> Write {
        self.guard
    }
}

impl Catalog {
    /// The first live document with a text, by the digest of its normal form.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn document_with_text(&self, sha256: &str) -> Result<std::result::Result<DocId, UniqueText>> {
        // The guard is read first: what is published after that changes it.
        let guard = self.state.get(&key::content_guard(sha256)).await?;
        let expect = guard.map_or(Expect::Absent, |guard| Expect::Version(guard.version));
        let prefix = key::contents_of(sha256);
        let found = self.state.scan(&prefix, None, ScanOrder::Ascending, 1).await?;
        let doc_id = found.first().and_then(|(key, _)| key.strip_prefix(&prefix)?.parse().ok());
        let guard = Write::put_for(key::content_guard(sha256), expect, Vec::new(), GUARD_LIFETIME);
        Ok(doc_id.ok_or(UniqueText { guard }))
    }

    /// The fingerprints of live documents beyond `after`, at most `limit`.
    pub async fn simhashes(&self, after: Option<DocId>, limit: usize) -> Result<Vec<(DocId, u64)>> {
        let after = after.map(key::simhash);
        let records = self.state.scan(key::SIMHASHES, after.as_deref(), ScanOrder::Ascending, limit).await?;
        let read = |(key, record): &(String, lkr_state::Record)| {
            let doc_id = key.strip_prefix(key::SIMHASHES)?.parse().ok()?;
            let bits = u64::from_str_radix(std::str::from_utf8(&record.value).ok()?, 16).ok()?;
            Some((doc_id, bits))
        };
        Ok(records.iter().filter_map(read).collect())
    }
}
