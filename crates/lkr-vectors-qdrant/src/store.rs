use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use lkr_domain::PointId;
use lkr_vectors::{
    BegunBatch, Collection, CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query,
    Result, ScrollCursor, Tags, VectorStore,
};
use tracing::Instrument as _;

use crate::{
    QdrantOptions,
    error::{Failure, InternalResult},
    filter::{self, Meaning, Translated},
    shared::Shared,
    snapshot::Changed,
    write,
};

/// A [`VectorStore`] on a Qdrant server or cluster. See the crate's documentation for what holds between processes.
#[derive(Clone)]
pub struct QdrantVectors {
    shared: Arc<Shared>,
}

impl QdrantVectors {
    /// Connects to a server.
    ///
    /// # Errors
    /// `Invalid` if the options are unusable, `Unavailable` if the server does not answer, and `Internal` if its
    /// release is too old or it refuses the API key.
    pub async fn open(options: QdrantOptions) -> Result<Self> {
        let shared = Shared::new(options).map_err(Failure::in_opening)?;
        shared.check_health().await.map_err(Failure::in_opening)?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Connects to a server and stores the [`snapshot`](VectorStore::snapshot) in `folder` there. If that fails, what was
    /// stored is removed again.
    ///
    /// # Errors
    /// As [`open`](Self::open), `Conflict` if there is a collection with the prefix, and `Corrupt` if the snapshot is
    /// damaged.
    pub async fn restore(options: QdrantOptions, folder: &Path) -> Result<Self> {
        let store = Self::open(options).await?;
        Box::pin(store.shared.restore(folder)).await.map_err(|failure| failure.in_operation("restore"))?;
        Ok(store)
    }

    /// Runs a change to its end, even if the caller's future is dropped.
    async fn run<T, F>(&self, operation: &'static str, change: impl FnOnce(Arc<Shared>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = InternalResult<T>> + Send + 'static,
    {
        let running = tokio::spawn(change(Arc::clone(&self.shared)).in_current_span());
        let result = running.await.map_err(|error| Error::new(ErrorKind::Internal, operation, error))?;
        result.map_err(|failure| failure.in_operation(operation))
    }
}

/// Waits until a snapshot that is being written has read the collection, because it is about to be dropped.
async fn stop_writes_after_copying(
    shared: &Shared,
    collection: &Collection,
) -> tokio::sync::OwnedRwLockWriteGuard<()> {
    loop {
        let writes = shared.stop_writes().await;
        let Some(copying) = shared.copying() else { return writes };
        let Some(mut progress) = copying.incomplete(collection).await else { return writes };
        // The channel closes when the snapshot ends, so this must not keep it alive.
        drop((writes, copying));
        let _advanced_or_ended = progress.changed().await;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl VectorStore for QdrantVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        let (spec, writes) = (spec.clone(), self.shared.stop_writes().await);
        self.run("ensure", |shared| async move {
            let _writes = writes;
            shared.ensure(&spec).await
        })
        .await
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        self.shared.describe(collection).await.map_err(|failure| failure.in_operation("describe"))
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        self.shared.list_collections().await.map_err(|failure| failure.in_operation("collections"))
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        let (aliases, writes) = (aliases.to_vec(), self.shared.stop_writes().await);
        self.run("switch", |shared| async move {
            let _writes = writes;
            shared.switch(&aliases).await
        })
        .await
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        let found = self
            .shared
            .describe(collection)
            .await
            .map_err(|failure| failure.in_operation("drop_collection"))?;
        let Some(CollectionSpec { collection, .. }) = found else { return Ok(()) };
        let writes = stop_writes_after_copying(&self.shared, &collection).await;
        self.run("drop_collection", |shared| async move {
            let _writes = writes;
            shared.drop_collection(&collection).await
        })
        .await
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        let name = collection.clone();
        let checked = check_points(&self.shared, collection, &points).await;
        checked.map_err(|failure| failure.in_operation("upsert"))?;
        if points.is_empty() {
            return Ok(());
        }
        let writes = self.shared.share_writes().await;
        self.run("upsert", |shared| async move {
            let _writes = writes;
            if let Some(copying) = shared.copying() {
                let ids = points.iter().map(|point| point.id).collect();
                copying.preserve(&shared, &name, Changed::Ids(ids)).await;
            }
            let encoded = tokio::task::spawn_blocking(move || write::encode(&points)).await;
            shared.upsert(&name, encoded.map_err(|error| Failure::internal(error.to_string()))?).await
        })
        .await
    }

    async fn upsert_all(&self, mut points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        let last = points.pop();
        let stored = points
            .into_iter()
            .filter(|(_, points)| !points.is_empty())
            .map(|(collection, points)| async move { self.upsert(&collection, points).await });
        futures_util::future::try_join_all(stored).await?;
        match last.filter(|(_, points)| !points.is_empty()) {
            Some((collection, points)) => self.upsert(&collection, points).await,
            None => Ok(()),
        }
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        let (name, filter) = (collection.clone(), filter.clone());
        let writes = self.shared.stop_writes().await;
        self.run("delete", |shared| async move {
            let _writes = writes;
            shared.spec(&name).await?;
            if let Some(copying) = shared.copying() {
                copying.preserve(&shared, &name, Changed::Matching(&filter)).await;
            }
            shared.delete(&name, &filter).await
        })
        .await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        let (name, filter, tags) = (collection.clone(), filter.clone(), tags.clone());
        let writes = self.shared.stop_writes().await;
        self.run("set_tags", |shared| async move {
            let _writes = writes;
            shared.spec(&name).await?;
            if let Some(copying) = shared.copying() {
                copying.preserve(&shared, &name, Changed::Matching(&filter)).await;
            }
            shared.set_tags(&name, &filter, &tags).await
        })
        .await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        self.shared.query_batch(queries).await.map_err(|failure| failure.in_operation("query_batch"))
    }

    fn begin_batch(&self, _: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        Ok(None)
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        self.shared.get(collection, ids, with).await.map_err(|failure| failure.in_operation("get"))
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let page = self.shared.scroll(collection, filter, after, limit, with).await;
        page.map_err(|failure| failure.in_operation("scroll"))
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        let count = async {
            let spec = self.shared.spec(collection).await?;
            let Translated { filter, fields } = filter::translate(filter, Meaning::All);
            self.shared.add_indexes(&spec.collection, fields);
            match filter {
                Some(filter) => self.shared.count(collection, filter).await,
                None => Ok(0),
            }
        };
        count.await.map_err(|failure| failure.in_operation("count"))
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.shared.write_snapshot(to).await.map_err(|failure| failure.in_operation("snapshot"))
    }

    fn reads_block(&self) -> bool {
        false
    }

    async fn health(&self) -> Result<()> {
        self.shared.check_health().await.map_err(|failure| failure.in_operation("health"))
    }
}

async fn check_points(shared: &Shared, collection: &Collection, points: &[Point]) -> InternalResult<()> {
    let check = |spec: &CollectionSpec| {
        points.iter().filter_map(|point| point.dense.as_deref()).try_for_each(|v| write::check_dense(spec, v))
    };
    match check(&shared.spec(collection).await?) {
        // An alias may have been switched by another process.
        Err(_) => check(&shared.fresh_spec(collection).await?),
        Ok(()) => Ok(()),
    }
}

impl fmt::Debug for QdrantVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QdrantVectors").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
