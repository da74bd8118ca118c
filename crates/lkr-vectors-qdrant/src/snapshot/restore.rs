use std::{path::Path, sync::Arc};

use lkr_vectors::CollectionSpec;
use qdrant_client::qdrant;

use super::file::{Manifest, PointsReader};
use crate::{
    error::{Failure, InternalResult},
    shared::Shared,
};

/// How many points one request stores.
const BATCH: usize = 1_000;

impl Shared {
    /// Stores the content of a snapshot in a store without collections.
    pub(crate) async fn restore(self: &Arc<Self>, folder: &Path) -> InternalResult<()> {
        let manifest = Manifest::read(folder).await?;
        let _writes = self.stop_writes().await;
        if let Some(existing) = self.list_collections().await?.first() {
            let message = format!(
                "a snapshot is restored into an empty store; collection {} exists",
                existing.collection
            );
            return Err(Failure::conflict(message));
        }
        let result = self.restore_all(folder, &manifest).await;
        if result.is_err() {
            for spec in manifest.specs() {
                if let Err(failure) = self.drop_collection(&spec.collection).await {
                    tracing::warn!(collection = %spec.collection, error = failure.message, "a partial copy stays");
                }
            }
        }
        result
    }

    async fn restore_all(&self, folder: &Path, manifest: &Manifest) -> InternalResult<()> {
        for (at, entry) in manifest.collections.iter().enumerate() {
            self.ensure(&entry.spec).await?;
            let reader = PointsReader::open(folder, at, entry.points)?;
            self.restore_points(&entry.spec, reader, entry.points).await?;
        }
        self.switch(&manifest.aliases).await
    }

    async fn restore_points(
        &self,
        spec: &CollectionSpec,
        mut reader: PointsReader,
        expected: u64,
    ) -> InternalResult<()> {
        let max_bytes = self.options.max_request_bytes;
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let points = reader.read(BATCH, max_bytes);
                (reader, points)
            });
            let (returned, points) = read.await.map_err(|error| Failure::internal(error.to_string()))?;
            reader = returned;
            let points = points?;
            if points.is_empty() {
                break;
            }
            self.upsert(&spec.collection, points).await?;
        }
        let stored = self.count(&spec.collection, qdrant::Filter::default()).await?;
        if stored == expected {
            return Ok(());
        }
        let name = &spec.collection;
        Err(Failure::corrupt(format!("collection {name} has {stored} points; the snapshot has {expected}")))
    }
}
