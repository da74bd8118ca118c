//! Looking up documents by their texts.

use std::time::Duration;

use lkr_domain::{DocId, Document, SpaceName};
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};

use crate::{Catalog, Result, key};

/// The lifetime of a guard record. It must exceed the time between a lookup and the publishing step that depends on it, and
/// was chosen with a wide margin.
const GUARD_LIFETIME: Duration = Duration::from_secs(3600);

/// The result of a lookup that found no document with a text, or with a near one. A step that contains its write fails if
/// another document with the text was published since, or, after a lookup of near texts, any document of the space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueText {
    guard: Write,
}

impl UniqueText {
    /// The write to add to the step that publishes a document with the text.
    #[must_use]
    pub fn into_write(self) -> Write {
        self.guard
    }
}

impl Catalog {
    /// The first live document of a space with a text, by the digest of its normal form; otherwise a guard for publishing
    /// one.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn document_with_text(
        &self,
        space: &SpaceName,
        sha256: &str,
    ) -> Result<std::result::Result<DocId, UniqueText>> {
        // The guard is read first, so that every later publish changes it.
        let unique = self.guarded_by(key::content_guard(space, sha256)).await?;
        let prefix = key::contents_of(space, sha256);
        let found = self.state.scan(&prefix, None, ScanOrder::Ascending, 1).await?;
        let doc_id = found.first().and_then(|(key, _)| key.strip_prefix(&prefix)?.parse().ok());
        Ok(doc_id.ok_or(unique))
    }

    /// A guard for publishing a text whose near texts the caller looks up after this call and does not find.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn no_new_fingerprint(&self, space: &SpaceName) -> Result<UniqueText> {
        self.guarded_by(key::simhash_guard(space)).await
    }

    async fn guarded_by(&self, key: String) -> Result<UniqueText> {
        let guard = self.state.get(&key).await?;
        let expect = guard.map_or(Expect::Absent, |guard| Expect::Version(guard.version));
        Ok(UniqueText { guard: Write::put_for(key, expect, Vec::new(), GUARD_LIFETIME) })
    }

    /// The spaces and fingerprints of up to `limit` live documents, beyond `after`.
    pub async fn simhashes(
        &self,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Vec<(DocId, SpaceName, u64)>> {
        let after = after.map(key::simhash);
        let records = self.state.scan(key::SIMHASHES, after.as_deref(), ScanOrder::Ascending, limit).await?;
        let read = |(key, record): &(String, lkr_state::Record)| {
            let doc_id = key.strip_prefix(key::SIMHASHES)?.parse().ok()?;
            let (space, bits) = decode_simhash(&record.value)?;
            Some((doc_id, space, bits))
        };
        Ok(records.iter().filter_map(read).collect())
    }
}

/// The digest under which the index of equal texts lists a document; `None` if it has no fingerprint.
#[must_use]
pub fn text_digest(document: &Document) -> Option<String> {
    let fingerprint = document.fingerprint.as_ref()?;
    Some(key::digest_in(&document.space, &fingerprint.sha256))
}

/// The write with which a step that adds a fingerprint to a space invalidates the guards of those who look for near texts.
pub(crate) fn change_guard(space: &SpaceName) -> Write {
    Write::put_for(key::simhash_guard(space), Expect::Any, Vec::new(), GUARD_LIFETIME)
}

/// The value of a document's record in the index of fingerprints. The default space is not named, as in versions without
/// spaces.
pub(crate) fn encode_simhash(space: &SpaceName, simhash: u64) -> String {
    match space.is_default() {
        true => format!("{simhash:016x}"),
        false => format!("{simhash:016x} {space}"),
    }
}

/// The space and the fingerprint of a record; `None` if it is damaged.
pub(crate) fn decode_simhash(value: &[u8]) -> Option<(SpaceName, u64)> {
    let text = std::str::from_utf8(value).ok()?;
    let (bits, space) = text.split_once(' ').map_or((text, None), |(bits, space)| (bits, Some(space)));
    let space = space.map_or_else(|| Some(SpaceName::default()), SpaceName::new)?;
    Some((space, u64::from_str_radix(bits, 16).ok()?))
}
