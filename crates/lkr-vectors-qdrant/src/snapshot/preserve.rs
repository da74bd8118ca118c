use std::collections::{HashMap, HashSet};

use lkr_domain::PointId;
use lkr_vectors::{Collection, Filter, Point};
use qdrant_client::qdrant;
use tokio::sync::{Mutex, watch};

use super::{PAGE, WITH, file::PointsFile};
use crate::{
    error::{Failure, InternalResult},
    filter::{self, Meaning},
    shared::Shared,
    write,
};

/// A copy that is being made.
#[derive(Debug)]
pub(crate) struct Copying {
    collections: HashMap<Collection, Mutex<CollectionCopy>>,
    /// The number of collections that are complete.
    complete: watch::Sender<usize>,
}

#[derive(Debug)]
struct CollectionCopy {
    position: Position,
    /// Points behind the position that writes have changed since the copy began. Their old versions are in the file.
    changed: HashSet<PointId>,
    file: PointsFile,
    /// Why the copy is incomplete.
    failure: Option<Failure>,
}

/// How far a collection was read.
#[derive(Debug, Clone, Copy)]
enum Position {
    Start,
    /// This point is the next one.
    Before(PointId),
    End,
}

/// The points that a write changes.
#[derive(Debug)]
pub(crate) enum Changed<'w> {
    Ids(Vec<PointId>),
    Matching(&'w Filter),
}

impl Copying {
    pub(super) fn new(files: Vec<(Collection, PointsFile)>) -> Self {
        let start =
            |file| CollectionCopy { position: Position::Start, changed: HashSet::new(), file, failure: None };
        let collections = files.into_iter().map(|(name, file)| (name, Mutex::new(start(file)))).collect();
        Self { collections, complete: watch::Sender::new(0) }
    }

    /// Copies the next points of a collection; whether it is complete. The caller holds the writes.
    pub(super) async fn copy_page(&self, shared: &Shared, collection: &Collection) -> InternalResult<bool> {
        let Some(copy) = self.collections.get(collection) else { return Ok(true) };
        let mut copy = copy.lock().await;
        if let Some(failure) = &copy.failure {
            return Err(failure.clone());
        }
        let from = match copy.position {
            Position::Start => None,
            Position::Before(id) => Some(id),
            Position::End => return Ok(true),
        };
        let all = qdrant::Filter::default();
        let (points, next) = shared.scroll_once(collection, &all, from, PAGE, WITH).await?;
        let unchanged: Vec<Point> =
            points.into_iter().filter(|point| !copy.changed.contains(&point.id)).collect();
        copy.file.append(&write::encode(&unchanged)).await?;
        copy.position = next.map_or(Position::End, Position::Before);
        if next.is_none() {
            self.complete.send_modify(|complete| *complete += 1);
        }
        Ok(next.is_none())
    }

    /// Copies the points that a write is about to change. A failure fails the copy, not the write.
    pub(crate) async fn preserve(&self, shared: &Shared, name: &Collection, changed: Changed<'_>) {
        let collection = match shared.fresh_spec(name).await {
            Ok(spec) => spec.collection,
            // The write fails as well, or the copy notices the same.
            Err(failure) => return tracing::debug!(reason = failure.message, "no point was preserved"),
        };
        let Some(copy) = self.collections.get(&collection) else { return };
        let mut copy = copy.lock().await;
        if let Err(failure) = copy.preserve(shared, &collection, changed).await {
            tracing::warn!(%collection, error = failure.message, "the snapshot that is being written fails");
            copy.failure = Some(failure);
        }
    }

    /// A receiver that changes when a collection is complete, unless this one is.
    pub(crate) async fn incomplete(&self, collection: &Collection) -> Option<watch::Receiver<usize>> {
        let receiver = self.complete.subscribe();
        let copy = self.collections.get(collection)?.lock().await;
        (!matches!(copy.position, Position::End)).then_some(receiver)
    }

    /// Makes the file durable, and returns the number of points in it.
    pub(super) async fn finish(&self, collection: &Collection) -> InternalResult<u64> {
        match self.collections.get(collection) {
            Some(copy) => copy.lock().await.file.finish().await,
            None => Ok(0),
        }
    }
}

impl CollectionCopy {
    async fn preserve(
        &mut self,
        shared: &Shared,
        collection: &Collection,
        changed: Changed<'_>,
    ) -> InternalResult<()> {
        match changed {
            Changed::Ids(ids) => {
                let ids: Vec<PointId> = ids.into_iter().filter(|id| self.is_ahead(*id)).collect();
                let old: Vec<Point> =
                    shared.get(collection, &ids, WITH).await?.into_iter().flatten().collect();
                // Points that are new must not be copied either.
                self.changed.extend(ids);
                self.file.append(&write::encode(&old)).await
            }
            Changed::Matching(filter) => {
                let Some(filter) = filter::translate(filter, Meaning::All).filter else { return Ok(()) };
                let mut next = match self.position {
                    Position::Start => None,
                    Position::Before(id) => Some(id),
                    Position::End => return Ok(()),
                };
                loop {
                    let (points, following) =
                        shared.scroll_once(collection, &filter, next, PAGE, WITH).await?;
                    let old: Vec<Point> =
                        points.into_iter().filter(|point| self.is_ahead(point.id)).collect();
                    self.changed.extend(old.iter().map(|point| point.id));
                    self.file.append(&write::encode(&old)).await?;
                    next = following;
                    if next.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether a point was neither read nor preserved yet.
    fn is_ahead(&self, id: PointId) -> bool {
        let is_ahead = match self.position {
            Position::Start => true,
            Position::Before(next) => id >= next,
            Position::End => false,
        };
        is_ahead && !self.changed.contains(&id)
    }
}
