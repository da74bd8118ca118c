//! The texts that are becoming documents, and the fingerprints of those that are documents.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use lkr_catalog::{Catalog, FINGERPRINT_CHANGE_KEPT, FingerprintChange, is_near};
use lkr_domain::{Dedup, DocId, Document, Fingerprint, SpaceName, TaskId};

use crate::{Result, SimhashIndex, shared_claim::SharedClaim, space_text::SpaceText};

/// The number of fingerprints that are read at a time.
const PAGE: usize = 1_000;

/// How long marks of changes can be relied on: shorter than they are kept.
const FOLLOW_LIMIT: Duration = FINGERPRINT_CHANGE_KEPT.saturating_sub(Duration::from_secs(15));

/// Claims on texts by the tasks of this process, and the SimHash fingerprints of live documents.
#[derive(Debug, Default)]
pub(crate) struct DuplicateIndex {
    claims: Mutex<HashMap<TaskId, (SpaceName, Fingerprint)>>,
    simhashes: Mutex<Simhashes>,
    loading: tokio::sync::Mutex<Followed>,
}

/// The changes of other processes that are in the index.
#[derive(Debug, Default)]
struct Followed {
    /// When they were read last; `None` before the fingerprints were loaded.
    at: Option<Instant>,
    /// The versions of the marks that were read.
    versions: HashMap<DocId, u64>,
}

/// The fingerprints of live documents by space.
#[derive(Debug, Default)]
struct SpaceIndexes {
    by_space: HashMap<SpaceName, SimhashIndex>,
    spaces: HashMap<DocId, SpaceName>,
}

impl SpaceIndexes {
    /// Adds a document, or moves it to this space.
    fn insert(&mut self, space: &SpaceName, doc_id: DocId, simhash: u64) {
        if self.spaces.get(&doc_id).is_some_and(|before| before != space) {
            self.remove(doc_id);
        }
        self.by_space.entry(space.clone()).or_default().insert(doc_id, simhash);
        self.spaces.insert(doc_id, space.clone());
    }

    fn remove(&mut self, doc_id: DocId) {
        let Some(space) = self.spaces.remove(&doc_id) else { return };
        if let Some(index) = self.by_space.get_mut(&space) {
            index.remove(doc_id);
        }
    }

    fn contains(&self, doc_id: DocId) -> bool {
        self.spaces.contains_key(&doc_id)
    }
}

/// The fingerprints of live documents. They are loaded when they are first needed.
#[derive(Debug, Default)]
enum Simhashes {
    #[default]
    Unloaded,
    /// The loaded part, and the documents that were deleted since loading began.
    Loading(SpaceIndexes, HashSet<DocId>),
    Loaded(SpaceIndexes),
}

/// While it exists, no other task of this process claims an equal or near text, and no task of another process does one that
/// is near by the same rule.
#[derive(Debug)]
pub(crate) struct TextClaim<'a> {
    index: &'a DuplicateIndex,
    task: TaskId,
    shared: Option<SharedClaim>,
}

impl TextClaim<'_> {
    /// The same claim, which other processes respect too.
    pub(crate) fn with_shared(mut self, shared: SharedClaim) -> Self {
        self.shared = Some(shared);
        self
    }
}

impl Drop for TextClaim<'_> {
    fn drop(&mut self) {
        self.index.claims().remove(&self.task);
    }
}

impl DuplicateIndex {
    fn claims(&self) -> MutexGuard<'_, HashMap<TaskId, (SpaceName, Fingerprint)>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn simhashes(&self) -> MutexGuard<'_, Simhashes> {
        self.simhashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A document was published, or moved to another space.
    pub(crate) fn published(&self, document: &Document) {
        let (doc_id, fingerprint) = (document.doc_id, document.fingerprint.as_ref());
        let Some(fingerprint) = fingerprint else { return };
        match &mut *self.simhashes() {
            Simhashes::Unloaded => {}
            Simhashes::Loading(index, deleted) => {
                deleted.remove(&doc_id);
                index.insert(&document.space, doc_id, fingerprint.simhash);
            }
            Simhashes::Loaded(index) => index.insert(&document.space, doc_id, fingerprint.simhash),
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
        SpaceText { space, fingerprint }: SpaceText<'_>,
    ) -> Option<TextClaim<'_>> {
        let mut claims = self.claims();
        let mut others = claims.iter().filter(|(other, (of, _))| **other != task && of == space);
        if others.any(|(_, (_, other))| are_duplicates(rule, fingerprint, other)) {
            return None;
        }
        claims.insert(task, (space.clone(), fingerprint.clone()));
        Some(TextClaim { index: self, task, shared: None })
    }

    /// The document of a space whose fingerprint is nearest to `simhash`, within `threshold` bits and not among `excluded`, and
    /// the number of bits in which it differs. [`load`](Self::load) must have been called.
    pub(crate) fn nearest(
        &self,
        space: &SpaceName,
        simhash: u64,
        threshold: u32,
        excluded: &HashSet<DocId>,
    ) -> Option<(DocId, u32)> {
        match &*self.simhashes() {
            Simhashes::Loaded(index) => {
                index.by_space.get(space).and_then(|index| index.nearest(simhash, threshold, excluded))
            }
            Simhashes::Unloaded | Simhashes::Loading(..) => None,
        }
    }

    /// Loads the fingerprints of all live documents, unless they are loaded. If other processes change documents too, reads
    /// their changes.
    pub(crate) async fn load(&self, catalog: &Catalog, is_shared: bool) -> Result<()> {
        let mut followed = self.loading.lock().await;
        let is_loaded = matches!(*self.simhashes(), Simhashes::Loaded(_));
        if is_loaded && !is_shared {
            return Ok(());
        }
        let begun = Instant::now();
        if is_loaded && followed.at.is_some_and(|at| at.elapsed() < FOLLOW_LIMIT) {
            self.follow(catalog, &mut followed).await?;
        } else {
            // The marks are read first: what changes from then on is read again.
            followed.versions = versions(&catalog.fingerprint_changes().await?);
            self.load_all(catalog).await?;
        }
        followed.at = Some(begun);
        Ok(())
    }

    /// Reads the changes of other processes, if the fingerprints are loaded, so that they need not be loaded again.
    pub(crate) async fn keep_up(&self, catalog: &Catalog) -> Result<()> {
        if self.loading.lock().await.at.is_none() {
            return Ok(());
        }
        self.load(catalog, true).await
    }

    async fn follow(&self, catalog: &Catalog, followed: &mut Followed) -> Result<()> {
        let changes = catalog.fingerprint_changes().await?;
        let is_new =
            |change: &&FingerprintChange| followed.versions.get(&change.doc_id) != Some(&change.version);
        let ids: Vec<DocId> = changes.iter().filter(is_new).map(|change| change.doc_id).collect();
        for ids in ids.chunks(PAGE) {
            let current = catalog.simhashes_of(ids).await?;
            let mut simhashes = self.simhashes();
            let Simhashes::Loaded(index) = &mut *simhashes else { continue };
            for (doc_id, current) in ids.iter().zip(current) {
                match current {
                    Some((space, simhash)) => index.insert(&space, *doc_id, simhash),
                    None => index.remove(*doc_id),
                }
            }
        }
        followed.versions = versions(&changes);
        Ok(())
    }

    async fn load_all(&self, catalog: &Catalog) -> Result<()> {
        // From here on, published and deleted documents are recorded.
        *self.simhashes() = Simhashes::Loading(SpaceIndexes::default(), HashSet::new());
        let mut after = None;
        loop {
            let page = catalog.simhashes(after, PAGE).await?;
            self.add_loaded(&page);
            match page.last() {
                Some((last, ..)) if page.len() == PAGE => after = Some(*last),
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

    fn add_loaded(&self, page: &[(DocId, SpaceName, u64)]) {
        let mut simhashes = self.simhashes();
        let Simhashes::Loading(index, deleted) = &mut *simhashes else { return };
        for (doc_id, space, simhash) in page {
            let doc_id = *doc_id;
            // A fingerprint published since loading began is newer than the loaded one.
            if !deleted.contains(&doc_id) && !index.contains(doc_id) {
                index.insert(space, doc_id, *simhash);
            }
        }
    }
}

fn versions(changes: &[FingerprintChange]) -> HashMap<DocId, u64> {
    changes.iter().map(|change| (change.doc_id, change.version)).collect()
}

/// Whether two texts are duplicates of each other by the rule.
fn are_duplicates(rule: Dedup, one: &Fingerprint, other: &Fingerprint) -> bool {
    match rule {
        Dedup::None => false,
        Dedup::Sha256 => one.sha256 == other.sha256,
        Dedup::Simhash { threshold } => is_near(one.simhash, other.simhash, threshold),
    }
}
