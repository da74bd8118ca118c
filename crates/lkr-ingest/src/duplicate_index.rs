//! The texts that are becoming documents, and the fingerprints of those that are documents.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use lkr_catalog::Catalog;
use lkr_domain::{Dedup, DocId, Document, Fingerprint, TaskId};

use crate::{Result, SimhashIndex};

/// The number of fingerprints that are read at a time.
const PAGE: usize = 1_000;

/// Claims on texts by the tasks of this process, and the SimHash fingerprints of live documents.
#[derive(Debug, Default)]
pub(crate) struct DuplicateIndex {
    claims: Mutex<HashMap<TaskId, Fingerprint>>,
    simhashes: Mutex<Simhashes>,
    loading: tokio::sync::Mutex<()>,
}

/// The fingerprints of live documents. They are loaded when they are first needed.
#[derive(Debug, Default)]
enum Simhashes {
    #[default]
    Unloaded,
    /// The loaded part, and the documents that were deleted since loading began.
    Loading(SimhashIndex, HashSet<DocId>),
    Loaded(SimhashIndex),
}

/// While it exists, no other task of this process claims an equal or near text.
#[derive(Debug)]
pub(crate) struct TextClaim<'a> {
    index: &'a DuplicateIndex,
    task: TaskId,
}

impl Drop for TextClaim<'_> {
    fn drop(&mut self) {
        self.index.claims().remove(&self.task);
    }
}

impl DuplicateIndex {
    fn claims(&self) -> MutexGuard<'_, HashMap<TaskId, Fingerprint>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn simhashes(&self) -> MutexGuard<'_, Simhashes> {
        self.simhashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A document was published.
    pub(crate) fn published(&self, document: &Document) {
        let (doc_id, fingerprint) = (document.doc_id, document.fingerprint.as_ref());
        let Some(fingerprint) = fingerprint else { return };
        match &mut *self.simhashes() {
            Simhashes::Unloaded => {}
            Simhashes::Loading(index, deleted) => {
                deleted.remove(&doc_id);
                index.insert(doc_id, fingerprint.simhash);
            }
            Simhashes::Loaded(index) => index.insert(doc_id, fingerprint.simhash),
        }
    }

    /// A document was deleted.
    pub(crate) fn deleted(&self, doc_id: DocId) {
        match &mut *self.simhashes() {
            Simhashes::Unloaded => {}
            Simhashes::Loading(index, deleted) => {
                deleted.insert(doc_id);
                index.remove(doc_id);
            }
            Simhashes::Loaded(index) => index.remove(doc_id),
        }
    }

    /// Claims a text; `None` while another task has claimed a duplicate of it. Does not wait, because a waiting task
    /// would occupy a worker and memory.
    pub(crate) fn claim(
        &self,
        task: TaskId,
        rule: Dedup,
        fingerprint: &Fingerprint,
    ) -> Option<TextClaim<'_>> {
        let mut claims = self.claims();
        let mut others = claims.iter().filter(|(other, _)| **other != task);
        if others.any(|(_, other)| are_duplicates(rule, fingerprint, other)) {
            return None;
        }
        claims.insert(task, fingerprint.clone());
        Some(TextClaim { index: self, task })
    }

    /// The document whose fingerprint is nearest to `simhash`, within `threshold` bits and not among `excluded`, and
    /// the number of bits in which it differs. [`load`](Self::load) must have been called.
    pub(crate) fn nearest(
        &self,
        simhash: u64,
        threshold: u32,
        excluded: &HashSet<DocId>,
    ) -> Option<(DocId, u32)> {
        match &*self.simhashes() {
            Simhashes::Loaded(index) => index.nearest(simhash, threshold, excluded),
            Simhashes::Unloaded | Simhashes::Loading(..) => None,
        }
    }

    /// Loads the fingerprints of all live documents, unless they are loaded.
    pub(crate) async fn load(&self, catalog: &Catalog) -> Result<()> {
        let _loading = self.loading.lock().await;
        if matches!(*self.simhashes(), Simhashes::Loaded(_)) {
            return Ok(());
        }
        // From here on, published and deleted documents are recorded.
        *self.simhashes() = Simhashes::Loading(SimhashIndex::default(), HashSet::new());
        let mut after = None;
        loop {
            let page = catalog.simhashes(after, PAGE).await?;
            self.add_loaded(&page);
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(*last),
                _ => break,
            }
        }
        let mut simhashes = self.simhashes();
        if let Simhashes::Loading(index, _) = &mut *simhashes {
            let index = std::mem::take(index);
            *simhashes = Simhashes::Loaded(index);
        }
        Ok(())
    }

    fn add_loaded(&self, page: &[(DocId, u64)]) {
        let mut simhashes = self.simhashes();
        let Simhashes::Loading(index, deleted) = &mut *simhashes else { return };
        for &(doc_id, simhash) in page {
            // A fingerprint published since loading began is newer than the loaded one.
            if !deleted.contains(&doc_id) && !index.contains(doc_id) {
                index.insert(doc_id, simhash);
            }
        }
    }
}

/// Whether two texts are duplicates of each other by the rule.
fn are_duplicates(rule: Dedup, one: &Fingerprint, other: &Fingerprint) -> bool {
    match rule {
        Dedup::None => false,
        Dedup::Sha256 => one.sha256 == other.sha256,
        Dedup::Simhash { threshold } => (one.simhash ^ other.simhash).count_ones() <= threshold,
    }
}
