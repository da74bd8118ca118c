//! What was said of a document's sections, kept beside its text.

use std::collections::BTreeMap;

use lkr_domain::DocId;

use super::section::Said;
use crate::{Result, ingestor::Inner};

/// What was said, by the digest of what was shown.
#[derive(Debug, Default)]
pub(super) struct Notes {
    said: BTreeMap<String, Said>,
    /// Those that this revision keeps; what an earlier one said, and nobody asked for here, goes with it.
    own: BTreeMap<String, Said>,
    unkept: usize,
}

impl Notes {
    /// Those that are kept beside a revision's text. What cannot be read is as good as nothing: it is asked anew.
    pub(super) async fn of(inner: &Inner, doc_id: DocId, revision: u64) -> Result<Self> {
        let Some(bytes) = inner.ports.texts.notes(doc_id, revision).await? else {
            return Ok(Self::default());
        };
        match serde_json::from_slice::<BTreeMap<String, Said>>(&bytes) {
            Ok(said) => Ok(Self { own: said.clone(), said, unkept: 0 }),
            Err(error) => {
                tracing::warn!(%doc_id, %error, "what was said of a document cannot be read");
                Ok(Self::default())
            }
        }
    }

    /// Adds what was said of an earlier revision.
    pub(super) fn join(&mut self, earlier: Self) {
        self.said.extend(earlier.said);
    }

    pub(super) fn get(&mut self, digest: &str) -> Option<Said> {
        let said = self.said.get(digest)?.clone();
        if self.own.insert(digest.to_owned(), said.clone()).is_none() {
            self.unkept += 1;
        }
        Some(said)
    }

    pub(super) fn add(&mut self, digest: String, said: Said) {
        self.own.insert(digest.clone(), said.clone());
        self.said.insert(digest, said);
        self.unkept += 1;
    }

    /// All that are to be kept, where some are not yet: one, or more where many are kept, because they are written
    /// together. From now on they are.
    pub(super) fn take_unkept(&mut self, all: bool) -> Option<Vec<u8>> {
        let least = if all { 1 } else { 1 + self.own.len() / 32 };
        if self.unkept < least {
            return None;
        }
        self.unkept = 0;
        serde_json::to_vec(&self.own).ok()
    }
}

/// Keeps notes beside a revision's text.
pub(super) async fn keep(inner: &Inner, doc_id: DocId, revision: u64, notes: Vec<u8>) -> Result<()> {
    Ok(inner.ports.texts.put_notes(doc_id, revision, notes).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_kept_and_the_rest_goes() {
        let said =
            |summary: &str| Said { summary: summary.to_owned(), parts: Vec::new(), keywords: Vec::new() };
        let mut earlier = Notes::default();
        earlier.add("a".to_owned(), said("one"));
        earlier.add("b".to_owned(), said("two"));
        let mut notes = Notes::default();
        notes.join(earlier);
        assert_eq!((notes.get("a"), notes.get("c")), (Some(said("one")), None));
        notes.add("c".to_owned(), said("three"));
        let kept = String::from_utf8(notes.take_unkept(false).unwrap()).unwrap();
        assert!(kept.contains("one") && kept.contains("three") && !kept.contains("two"), "{kept}");
        assert!(
            notes.take_unkept(true).is_none()
                && notes.get("a").is_some()
                && notes.take_unkept(true).is_none()
        );
        (0..40).for_each(|n| notes.add(n.to_string(), said("more")));
        assert!(notes.take_unkept(false).is_some());
        notes.add("d".to_owned(), said("four"));
        assert!(notes.take_unkept(false).is_none() && notes.take_unkept(true).is_some());
    }
}
