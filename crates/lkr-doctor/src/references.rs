//! What the records refer to.

use std::collections::{BTreeSet, HashSet};

use lkr_catalog::{Garbage, RecordContent};
use lkr_domain::{DocId, Layer, Original};

/// The points, revisions and originals that the scanned records refer to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// The number of points of live documents, by layer.
    pub(crate) live_points: [u64; 4],
    /// Revisions that are not live: of unfinished tasks, of failed attempts, and to be collected.
    pub(crate) other_revisions: BTreeSet<(DocId, u64)>,
    /// Paths of originals.
    pub(crate) originals: HashSet<String>,
}

impl References {
    /// Adds what a record refers to.
    pub(crate) fn add(&mut self, content: &RecordContent) {
        let (revision, original) = match content {
            RecordContent::Document(document) => {
                (None, document.original.as_ref().map(|original| original.path.clone()))
            }
            RecordContent::Task(task) => {
                let unfinished = Some(task).filter(|task| !task.status.has_ended());
                let revision =
                    unfinished.and_then(|task| Some((task.subject.doc_id()?, task.input.revision)));
                let original = task.input.original.as_ref().filter(|_| revision.is_some());
                (revision, original.map(|original| original.path.clone()))
            }
            RecordContent::FailedAttempt(doc_id, revision, _, original) => {
                (Some((*doc_id, *revision)), original.clone())
            }
            RecordContent::Garbage(Garbage { doc_id, revision, original }) => {
                (Some((*doc_id, *revision)), original.clone())
            }
            RecordContent::Upload(_, path) => (None, Some(path.clone())),
            RecordContent::Change(note) => (note.copy_revision().map(|copy| (note.doc_id, copy)), None),
            _ => return,
        };
        self.other_revisions.extend(revision);
        self.originals.extend(original);
    }

    /// Keeps a revision and its original from being removed.
    pub(crate) fn keep(&mut self, doc_id: DocId, revision: u64, original: Option<&Original>) {
        self.other_revisions.insert((doc_id, revision));
        self.originals.extend(original.map(|original| original.path.clone()));
    }

    /// Forgets the points of live documents, which are counted again.
    pub(crate) fn recount(&mut self) {
        self.live_points = [0; 4];
    }

    pub(crate) fn add_live_points(&mut self, layer: Layer, count: u64) {
        if let Some(points) = self.live_points.get_mut(layer as usize) {
            *points += count;
        }
    }
}
