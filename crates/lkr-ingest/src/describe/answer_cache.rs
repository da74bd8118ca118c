//! The model's descriptions of a document's sections, stored beside its text.

use std::collections::BTreeMap;

use lkr_catalog::Texts;
use lkr_domain::DocId;

use crate::{Result, section::Description};

/// Descriptions by the digest of the described section. Neither another attempt nor a replacement asks the model again about
/// a section that did not change.
#[derive(Debug, Default)]
pub(super) struct AnswerCache {
    known: BTreeMap<String, Description>,
    /// The descriptions that this revision uses. Those of an earlier revision that it does not use are not stored again.
    used: BTreeMap<String, Description>,
    unsaved: usize,
}

impl AnswerCache {
    /// Reads the stored descriptions of a revision. Unreadable ones are ignored: the model is asked again.
    pub(super) async fn read(texts: &Texts, doc_id: DocId, revision: u64) -> Result<Self> {
        let Some(bytes) = texts.notes(doc_id, revision).await? else {
            return Ok(Self::default());
        };
        match serde_json::from_slice::<BTreeMap<String, Description>>(&bytes) {
            Ok(known) => Ok(Self { used: known.clone(), known, unsaved: 0 }),
            Err(error) => {
                tracing::warn!(%doc_id, %error, "cannot read the stored descriptions of a document; ignoring them");
                Ok(Self::default())
            }
        }
    }

    /// Adds the descriptions of an earlier revision.
    pub(super) fn extend(&mut self, earlier: Self) {
        self.known.extend(earlier.known);
    }

    pub(super) fn get(&mut self, digest: &str) -> Option<Description> {
        let description = self.known.get(digest)?.clone();
        if self.used.insert(digest.to_owned(), description.clone()).is_none() {
            self.unsaved += 1;
        }
        Some(description)
    }

    pub(super) fn insert(&mut self, digest: String, description: Description) {
        self.used.insert(digest.clone(), description.clone());
        self.known.insert(digest, description);
        self.unsaved += 1;
    }

    /// The serialised descriptions, which then count as stored. `None` if too few are new: with `all` that is none, else
    /// fewer than about one in 32 of those stored, because each write contains all descriptions.
    pub(super) fn take_unsaved(&mut self, all: bool) -> Option<Vec<u8>> {
        let least = if all { 1 } else { 1 + self.used.len() / 32 };
        if self.unsaved < least {
            return None;
        }
        self.unsaved = 0;
        serde_json::to_vec(&self.used).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_unsaved_returns_used_answers_once_enough_are_new() {
        let described = |summary: &str| Description {
            summary: summary.to_owned(),
            parts: Vec::new(),
            keywords: Vec::new(),
        };
        let mut earlier = AnswerCache::default();
        earlier.insert("a".to_owned(), described("one"));
        earlier.insert("b".to_owned(), described("two"));
        let mut cache = AnswerCache::default();
        cache.extend(earlier);
        assert_eq!((cache.get("a"), cache.get("c")), (Some(described("one")), None));
        cache.insert("c".to_owned(), described("three"));
        let stored = String::from_utf8(cache.take_unsaved(false).unwrap()).unwrap();
        assert!(stored.contains("one") && stored.contains("three") && !stored.contains("two"), "{stored}");
        assert!(cache.take_unsaved(true).is_none());
        assert!(cache.get("a").is_some() && cache.take_unsaved(true).is_none());
        (0..40).for_each(|n| cache.insert(n.to_string(), described("more")));
        assert!(cache.take_unsaved(false).is_some());
        cache.insert("d".to_owned(), described("four"));
        assert!(cache.take_unsaved(false).is_none() && cache.take_unsaved(true).is_some());
    }
}
