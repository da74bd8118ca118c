//! Copying records and points, as they are at one moment, into a store that is archived.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use lkr_catalog::{Catalog, tags_of};
use lkr_domain::{DocId, Layer};
use lkr_migrate::{alias, copies};
use lkr_state::{Key, RecordExport, RecordSink, StateStore};
use lkr_store_lmdb::{LmdbState, LmdbStore};
use lkr_vectors::{Collection, Filter, Include, Point, Tags, VectorStore};
use time::OffsetDateTime;

use super::{CREATE, io_error, remove};
use crate::{
    Error, ErrorKind, Result,
    blocking::blocking,
    embedded_store::{inspection_options, open_error},
    error::During,
};

/// The folder below the data folder for the copy of the store that is being archived.
const COPY: &str = "backup.tmp";

/// How many points are copied at a time.
const POINTS: usize = 256;

/// Where the records and points of a knowledge base are, for its backups.
#[derive(Debug, Clone)]
pub(crate) struct BackupSource {
    /// The folder in which the copy is made.
    pub(crate) data_dir: PathBuf,
    /// The embedded store, if it has the records or the points.
    pub(crate) embedded: Option<LmdbStore>,
    /// The records, if they are elsewhere.
    pub(crate) records: Option<Arc<dyn RecordExport>>,
    /// Whether the points are elsewhere.
    pub(crate) has_other_vectors: bool,
    /// Held by the backup that is in progress.
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
}

/// A copy of records and points. Dropping it removes its folder.
#[derive(Debug)]
pub(super) struct StoreCopy {
    pub(super) store: LmdbStore,
    folder: CopyDir,
}

impl StoreCopy {
    /// A copy of a source, whose ports are `state` and `vectors`. Garbage collection must be paused until the copy is dropped.
    ///
    /// # Errors
    /// `Overloaded` if the collections of points changed meanwhile.
    pub(super) async fn of(
        source: &BackupSource,
        state: &dyn StateStore,
        vectors: &dyn VectorStore,
    ) -> Result<Self> {
        let BackupSource { data_dir, embedded, records, has_other_vectors, .. } = source;
        if let (Some(store), None, false) = (embedded, records, has_other_vectors) {
            return Self::of_embedded(store, data_dir).await;
        }
        let before = aliases(vectors).await?;
        let copy = match (records, embedded) {
            (Some(records), _) => Self::of_records(&**records, state.now(), data_dir).await?,
            (None, Some(store)) => Self::of_embedded(store, data_dir).await?,
            (None, None) => return Err(Error::new(ErrorKind::Internal, CREATE, "no store has the records")),
        };
        copy.take_points(vectors, &before).await?;
        // While the collections stay the same, no point of a revision that the records refer to is removed.
        if aliases(vectors).await? != before {
            return Err(changed_collections());
        }
        Ok(copy)
    }

    /// A copy of an embedded store.
    pub(super) async fn of_embedded(store: &LmdbStore, data_dir: &Path) -> Result<Self> {
        let folder = CopyDir::new(data_dir)?;
        store.snapshot(&folder.0).await.during(CREATE)?;
        Self::open(folder).await
    }

    /// A store with copies of records, without those of running processes.
    async fn of_records(records: &dyn RecordExport, now: OffsetDateTime, data_dir: &Path) -> Result<Self> {
        let copy = Self::open(CopyDir::new(data_dir)?).await?;
        records.export(&mut RecordCopies { to: copy.store.state(), now }).await.during(CREATE)?;
        Ok(copy)
    }

    async fn open(folder: CopyDir) -> Result<Self> {
        let path = folder.0.clone();
        let store =
            blocking(CREATE, move || LmdbStore::open(&path, inspection_options()).map_err(open_error));
        Ok(Self { store: store.await?, folder })
    }

    /// The file with records and points.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.0.join("kb").join("data.mdb")
    }

    /// Copies all points of the revisions that the copied records refer to, and then `aliases`.
    async fn take_points(&self, from: &dyn VectorStore, aliases: &[(Collection, Collection)]) -> Result<()> {
        let (to, catalog) = (self.store.vectors(), Catalog::new(Arc::new(self.store.state())));
        for outdated in to.collections().await.during_points()? {
            to.drop_collection(&outdated.collection).await.during_points()?;
        }
        let mut specs = from.collections().await.during_points()?;
        // L1 is written last: if it exists, all points exist. So it is read first: in collections that are being filled, it may be
        // written after the others were read.
        specs.sort_by_key(|spec| !spec.collection.name().starts_with(Layer::L1.name()));
        for spec in specs {
            to.ensure(&spec).await.during_points()?;
            let (all, mut cursor) = (Filter::all(), None);
            loop {
                let page = from.scroll(&spec.collection, &all, cursor.as_ref(), POINTS, Include::All).await;
                let page = page.during_points()?;
                let points = as_recorded(page.points, &catalog).await?;
                to.upsert(&spec.collection, points).await.during_points()?;
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
        }
        to.switch(aliases).await.during_points()
    }
}

/// The points of revisions that the records of `catalog` refer to. Points of live documents have the tags of their records, because
/// they may have been changed since.
async fn as_recorded(points: Vec<Point>, catalog: &Catalog) -> Result<Vec<Point>> {
    let mut revisions: HashMap<(DocId, u64), Recorded> = HashMap::new();
    let mut kept = Vec::with_capacity(points.len());
    for mut point in points {
        let revision = (point.origin.doc_id, point.origin.revision);
        let recorded = match revisions.get(&revision) {
            Some(recorded) => recorded,
            None => {
                let recorded = Recorded::of(revision, catalog).await?;
                revisions.entry(revision).or_insert(recorded)
            }
        };
        match recorded {
            Recorded::Live(tags) => point.tags.clone_from(tags),
            Recorded::InProgress => {}
            Recorded::Unknown => continue,
        }
        kept.push(point);
    }
    Ok(kept)
}

/// What records say of a revision.
enum Recorded {
    /// It is the live one of a document with these tags.
    Live(Tags),
    /// A task or a failed attempt makes it.
    InProgress,
    /// Nothing refers to it.
    Unknown,
}

impl Recorded {
    async fn of((doc_id, revision): (DocId, u64), catalog: &Catalog) -> Result<Self> {
        let live = catalog.document(doc_id).await.during(CREATE)?;
        if let Some(live) = live.filter(|live| live.value.revision == revision) {
            return Ok(Self::Live(tags_of(&live.value)));
        }
        let is_referenced = catalog.is_referenced(doc_id, revision).await.during(CREATE)?;
        Ok(if is_referenced { Self::InProgress } else { Self::Unknown })
    }
}

/// A change of the embedding model drops collections, also those that are being copied.
/// The aliases of the layers, each with its collection.
async fn aliases(vectors: &dyn VectorStore) -> Result<Vec<(Collection, Collection)>> {
    let mut aliases = Vec::new();
    for layer in Layer::ALL {
        aliases.extend(alias(vectors, layer).await.during_points()?);
    }
    Ok(aliases)
}

fn changed_collections() -> Error {
    Error::new(ErrorKind::Overloaded, CREATE, "the embedding model was changed meanwhile; try again")
}

/// Gives errors of the store of points their context.
trait DuringPoints<T> {
    fn during_points(self) -> Result<T>;
}

impl<T> DuringPoints<T> for lkr_vectors::Result<T> {
    fn during_points(self) -> Result<T> {
        match self {
            Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Err(changed_collections()),
            result => result.map_err(lkr_catalog::Error::from).during(CREATE),
        }
    }
}

/// Writes records into the copy.
struct RecordCopies {
    to: LmdbState,
    /// The time of the source's clock.
    now: OffsetDateTime,
}

#[async_trait]
impl RecordSink for RecordCopies {
    async fn add(&mut self, records: Vec<(Key, Bytes)>) -> lkr_state::Result<()> {
        // A step contains each key once.
        let records: BTreeMap<_, _> = records.into_iter().collect();
        for step in copies(records, self.now) {
            self.to.apply(step).await?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct CopyDir(PathBuf);

impl CopyDir {
    /// The folder of the copy, which does not exist.
    fn new(data_dir: &Path) -> Result<Self> {
        remove_stale_copy(data_dir).map_err(io_error(CREATE))?;
        Ok(Self(data_dir.join(COPY)))
    }
}

impl Drop for CopyDir {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "temporary store copy of a backup could not be removed");
        }
    }
}

/// Removes the store copy that an interrupted backup left. No backup may be in progress.
pub(crate) fn remove_stale_copy(data_dir: &Path) -> io::Result<()> {
    remove(&data_dir.join(COPY))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use lkr_catalog::{Acceptance, Task, TaskInput};
    use lkr_domain::{Creator, PointId, SpaceName, SparseVector};
    use lkr_state::MemoryState;
    use lkr_vectors::{CollectionSpec, FailingVectors, MemoryVectors, PointOrigin};
    use serde_json::Value;

    use super::*;

    /// The points of a document are written after the first collection was read. L1 says that the others exist, so the copy must
    /// not have it without them.
    #[tokio::test]
    async fn points_that_are_written_meanwhile_are_copied_without_l1_rather_than_l1_without_them() {
        let records = Arc::new(MemoryState::default());
        let catalog = Catalog::new(Arc::clone(&records) as Arc<dyn StateStore>);
        let (doc_id, revision) = (DocId::new(), 1);
        let input = TaskInput { revision, ..TaskInput::default() };
        let task = Task::ingest(catalog.clock(), doc_id, SpaceName::default(), Creator::default(), input);
        catalog.accept(&[Acceptance { task, existing: None }], Vec::new()).await.unwrap();

        let inner: Arc<dyn VectorStore> = Arc::new(MemoryVectors::default());
        let collections = [Layer::Chunks, Layer::L1]
            .map(|layer| (layer, Collection::new(format!("{layer}.0123456789ab")).unwrap()));
        for (_, collection) in &collections {
            let spec = CollectionSpec { collection: collection.clone(), dense: None };
            inner.ensure(&spec).await.unwrap();
        }
        let (target, written, reads) = (Arc::clone(&inner), collections.clone(), AtomicUsize::new(0));
        let vectors = FailingVectors::new(inner, move |operation| {
            if operation == "scroll" && reads.fetch_add(1, Ordering::Relaxed) == 1 {
                for (layer, collection) in &written {
                    let point = Point {
                        id: PointId::derive(doc_id, revision, *layer, 0),
                        origin: PointOrigin { doc_id, revision, ordinal: 0, l2: None, l3: None },
                        tags: Tags::new(),
                        dense: None,
                        sparse: SparseVector::default(),
                        payload: Value::Null,
                    };
                    target.upsert(collection, vec![point]).now_or_never().unwrap().unwrap();
                }
            }
            None
        });

        let folder = tempfile::tempdir().unwrap();
        let copy = StoreCopy::of_records(&*records, records.now(), folder.path()).await.unwrap();
        copy.take_points(&vectors, &[]).await.unwrap();
        let mut counts = Vec::new();
        for (layer, collection) in &collections {
            let count = copy.store.vectors().count(collection, &Filter::all()).await.unwrap();
            counts.push((*layer, count));
        }
        assert_eq!(counts, [(Layer::Chunks, 1), (Layer::L1, 0)]);
    }
}
