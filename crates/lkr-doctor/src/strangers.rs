//! What is stored and belongs to nothing.

use std::collections::{BTreeSet, HashSet};

use lkr_catalog::{Entry, Garbage, Result};
use lkr_domain::{DocId, Layer};
use lkr_vectors::{Collection, Condition, Filter, Include};

use crate::{Doctor, RepairAction, layers};

/// How many points are read at a time.
const PAGE: usize = 1_000;

/// What the records know.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How many points live documents have, by layer.
    points: [u64; 4],
    /// Revisions that are not live: under way, held for another try, or to be collected.
    others: BTreeSet<(DocId, u64)>,
    originals: HashSet<String>,
}

impl Known {
    pub(crate) fn note(&mut self, entry: &Entry) {
        let (other, original) = match entry {
            Entry::Document(document) => {
                (None, document.original.as_ref().map(|original| original.path.clone()))
            }
            Entry::Task(task) => {
                let unfinished = Some(task).filter(|task| !task.status.has_ended());
                let other = unfinished.and_then(|task| Some((task.subject.doc_id()?, task.input.revision)));
                let original = task.input.original.as_ref().filter(|_| other.is_some());
                (other, original.map(|original| original.path.clone()))
            }
            Entry::FailedAttempt(doc_id, revision, _, original) => {
                (Some((*doc_id, *revision)), original.clone())
            }
            Entry::Garbage(Garbage { doc_id, revision, original }) => {
                (Some((*doc_id, *revision)), original.clone())
            }
            Entry::Upload(_, path) => (None, Some(path.clone())),
            _ => return,
        };
        self.others.extend(other);
        self.originals.extend(original);
    }

    pub(crate) fn add_points(&mut self, layer: Layer, count: u64) {
        if let Some(points) = self.points.get_mut(layer as usize) {
            *points += count;
        }
    }
}

impl Doctor<'_> {
    pub(crate) async fn strangers(&mut self) {
        let mut unknown = BTreeSet::new();
        for layer in layers() {
            if let Err(error) = self.unknown_points(layer, &mut unknown).await {
                self.unread(format!("what belongs to nothing in {layer}"), error).await;
            }
        }
        unknown.retain(|(doc_id, _)| !self.misplaced.contains(doc_id));
        for (doc_id, revision) in unknown {
            let what =
                format!("there are points of document {doc_id}, revision {revision}, which is nowhere");
            self.found(what, None, RepairAction::DropPoints(doc_id, revision)).await;
        }
        match self.ports.texts.stored().await {
            Ok(stored) => self.unknown_texts(stored).await,
            Err(error) => self.unread("what texts there are", error).await,
        }
        match self.ports.originals.stored().await {
            Ok(stored) => self.unknown_originals(stored).await,
            Err(error) => self.unread("what files there are", error).await,
        }
    }

    async fn unknown_texts(&mut self, stored: BTreeSet<(DocId, u64)>) {
        for (doc_id, revision) in stored {
            if !self.misplaced.contains(&doc_id) && !self.is_known(doc_id, revision).await {
                let what =
                    format!("there is a text of document {doc_id}, revision {revision}, which is nowhere");
                self.found(what, None, RepairAction::DropText(doc_id, revision)).await;
            }
        }
    }

    async fn unknown_originals(&mut self, stored: Vec<String>) {
        for path in stored {
            // A repair may have stored some since.
            if !self.known.originals.contains(&path) && !self.is_original(&path).await {
                self.found(
                    format!("the file {path} is no document's"),
                    None,
                    RepairAction::DropOriginal(path),
                )
                .await;
            }
        }
    }

    /// Whether a revision is live, or another one that is known.
    async fn is_known(&self, doc_id: DocId, revision: u64) -> bool {
        if self.known.others.contains(&(doc_id, revision)) {
            return true;
        }
        // What is said of it may not be readable: that was found, and it is not for sure nobody's.
        self.ports.catalog.knows(doc_id, revision).await.unwrap_or(true)
    }

    async fn is_original(&self, path: &str) -> bool {
        let id = path.rsplit('/').next().and_then(|name| name.split('_').next()?.parse().ok());
        let Some(doc_id) = id else { return true };
        if self.misplaced.contains(&doc_id) {
            return true;
        }
        let Ok(present) = self.ports.catalog.document_state(doc_id).await else { return true };
        let unfinished = present.unfinished.and_then(|unfinished| unfinished.task.input.original);
        unfinished.is_some_and(|original| original.path == path)
    }

    /// Finds revisions that have points in a layer and are not known. Only where there are more points than the known
    /// ones have, all are looked at.
    async fn unknown_points(&self, layer: Layer, unknown: &mut BTreeSet<(DocId, u64)>) -> Result<()> {
        let (vectors, collection) = (&self.ports.vectors, Collection::from(layer));
        if vectors.describe(&collection).await?.is_none() {
            return Ok(());
        }
        let mut expected = self.known.points.get(layer as usize).copied().unwrap_or_default();
        for (doc_id, revision) in &self.known.others {
            let own = Filter::only(Condition::Revision(*doc_id, *revision));
            expected += vectors.count(&collection, &own).await?;
        }
        if vectors.count(&collection, &Filter::all()).await? <= expected {
            return Ok(());
        }
        let mut after = None;
        loop {
            let all = Filter::all();
            let page = vectors.scroll(&collection, &all, after.as_ref(), PAGE, Include::Payload).await?;
            let revisions: BTreeSet<_> =
                page.points.iter().map(|point| (point.origin.doc_id, point.origin.revision)).collect();
            for (doc_id, revision) in revisions {
                if !self.is_known(doc_id, revision).await {
                    unknown.insert((doc_id, revision));
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
