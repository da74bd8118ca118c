//! Duplicates: documents that are there already, and twins that arrive at once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use lkr_catalog::{Duplicate, Stored};
use lkr_domain::{Dedup, DocId, Document, Fingerprint, TaskId};
use lkr_state::Write;

use crate::{Result, ingestor::Inner, near::SimhashIndex};

/// How many fingerprints are read at a time.
const PAGE: usize = 1_000;

/// What is being made a document of, and the fingerprints of those that are.
#[derive(Debug, Default)]
pub(crate) struct DuplicateIndex {
    under_way: Mutex<HashMap<TaskId, Fingerprint>>,
    near: Mutex<Known>,
    reading: tokio::sync::Mutex<()>,
}

/// The fingerprints of live documents, once somebody asked for them.
#[derive(Debug, Default)]
enum Known {
    #[default]
    Unread,
    /// They are being read; these went meanwhile.
    Reading(SimhashIndex, HashSet<DocId>),
    Read(SimhashIndex),
}

/// The right to make a document of a text: nobody else in this process makes one of a twin until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    twins: &'a DuplicateIndex,
    task: TaskId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.twins.lock().remove(&self.task);
    }
}

/// Whether a text becomes a document.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    /// It does, as long as the write holds that is part of the step.
    UniqueText(Option<Claim<'a>>, Vec<Write>),
    /// A twin is under way: what becomes of that decides.
    Later,
    /// This one is there already.
    Duplicate(Duplicate, Box<Stored<Document>>),
}

impl DuplicateIndex {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Fingerprint>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A document has become visible.
    pub(crate) fn published(&self, document: &Document) {
        let (doc_id, fingerprint) = (document.doc_id, document.fingerprint.as_ref());
        let Some(fingerprint) = fingerprint else { return };
        match &mut *self.known() {
            Known::Unread => {}
            Known::Reading(near, gone) => {
                gone.remove(&doc_id);
                near.insert(doc_id, fingerprint.simhash);
            }
            Known::Read(near) => near.insert(doc_id, fingerprint.simhash),
        }
    }

    /// A document is gone.
    pub(crate) fn deleted(&self, doc_id: DocId) {
        match &mut *self.known() {
            Known::Unread => {}
            Known::Reading(near, gone) => {
                gone.insert(doc_id);
                near.remove(doc_id);
            }
            Known::Read(near) => near.remove(doc_id),
        }
    }

    /// The right to make a document of a text; `None` while another one is being made of a twin. Nobody waits here: who
    /// waits takes a worker, and memory.
    fn claim(&self, task: TaskId, rule: Dedup, fingerprint: &Fingerprint) -> Option<Claim<'_>> {
        let mut under_way = self.lock();
        let mut others = under_way.iter().filter(|(other, _)| **other != task);
        if others.any(|(_, other)| distance(rule, fingerprint, other).is_some()) {
            return None;
        }
        under_way.insert(task, fingerprint.clone());
        Some(Claim { twins: self, task })
    }
}

/// How far apart two texts are, where that makes one the duplicate of the other.
fn distance(rule: Dedup, one: &Fingerprint, other: &Fingerprint) -> Option<u32> {
    match rule {
        Dedup::None => None,
        Dedup::Sha256 => (one.sha256 == other.sha256).then_some(0),
        Dedup::Simhash { threshold } => {
            Some((one.simhash ^ other.simhash).count_ones()).filter(|distance| *distance <= threshold)
        }
    }
}

/// Decides whether a document is made of a text, or is there already.
pub(crate) async fn decide<'a>(
    inner: &'a Inner,
    task: TaskId,
    rule: Dedup,
    fingerprint: &Fingerprint,
) -> Result<Decision<'a>> {
    if rule == Dedup::None {
        return Ok(Decision::UniqueText(None, Vec::new()));
    }
    // What is published after this, in this process, was not under way before it.
    let Some(claim) = inner.twins.claim(task, rule, fingerprint) else { return Ok(Decision::Later) };
    match rule {
        Dedup::None => Ok(Decision::UniqueText(None, Vec::new())),
        Dedup::Sha256 => equal(inner, claim, fingerprint).await,
        Dedup::Simhash { threshold } => near(inner, claim, fingerprint, threshold).await,
    }
}

async fn equal<'a>(inner: &Inner, claim: Claim<'a>, fingerprint: &Fingerprint) -> Result<Decision<'a>> {
    loop {
        let doc_id = match inner.ports.catalog.document_with_text(&fingerprint.sha256).await? {
            Ok(doc_id) => doc_id,
            Err(free) => return Ok(Decision::UniqueText(Some(claim), vec![free.into_write()])),
        };
        // Where it went meanwhile, so did what it was found by.
        if let Some(document) = inner.ports.catalog.document(doc_id).await? {
            return Ok(Decision::Duplicate(Duplicate { doc_id, distance: 0 }, Box::new(document)));
        }
    }
}

async fn near<'a>(
    inner: &Inner,
    claim: Claim<'a>,
    fingerprint: &Fingerprint,
    threshold: u32,
) -> Result<Decision<'a>> {
    read_all(inner).await?;
    let mut passed = HashSet::new();
    loop {
        let found = match &*inner.twins.known() {
            Known::Read(near) => near.nearest(fingerprint.simhash, threshold, &passed),
            _ => None,
        };
        let Some((doc_id, distance)) = found else {
            return Ok(Decision::UniqueText(Some(claim), Vec::new()));
        };
        let document = inner.ports.catalog.document(doc_id).await?;
        let is_so = |document: &Stored<Document>| {
            let bits = document.value.fingerprint.as_ref().map(|known| known.simhash ^ fingerprint.simhash);
            bits.is_some_and(|bits| bits.count_ones() == distance)
        };
        if let Some(document) = document.filter(is_so) {
            return Ok(Decision::Duplicate(Duplicate { doc_id, distance }, Box::new(document)));
        }
        passed.insert(doc_id);
    }
}

/// Reads the fingerprints of all live documents, unless that was done.
async fn read_all(inner: &Inner) -> Result<()> {
    let twins = &inner.twins;
    let _one_reads = twins.reading.lock().await;
    if matches!(*twins.known(), Known::Read(_)) {
        return Ok(());
    }
    // What is published or deleted from now on is noted.
    *twins.known() = Known::Reading(SimhashIndex::default(), HashSet::new());
    let mut after = None;
    loop {
        let page = inner.ports.catalog.simhashes(after, PAGE).await?;
        if let Known::Reading(near, gone) = &mut *twins.known() {
            // What was published since is newer than what was read.
            for &(doc_id, bits) in &page {
                if !gone.contains(&doc_id) && !near.contains(doc_id) {
                    near.insert(doc_id, bits);
                }
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE => after = Some(*last),
            _ => break,
        }
    }
    let mut known = twins.known();
    if let Known::Reading(near, _) = &mut *known {
        let near = std::mem::take(near);
        *known = Known::Read(near);
    }
    Ok(())
}
