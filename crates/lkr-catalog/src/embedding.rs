//! Records about embedding: documents without vectors, the re-embedding task, and each model's cosine scale.

use lkr_domain::DocId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{
    ActiveTask, Catalog, CollectionState, CorpusSlot, Error, LiveCollections, Result, Task, TaskSubject,
    UnfinishedTask, key, task_changes, task_index::TaskGroup,
};

/// The subject of a re-embedding task.
const REEMBEDDING: TaskSubject = TaskSubject::Corpus(CorpusSlot::REEMBEDDING);

#[derive(Debug, Serialize, Deserialize)]
struct CosineScaleV1 {
    cosine_scale: f32,
}

/// The note that a document may lack dense vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unembedded {
    /// The document.
    pub doc_id: DocId,
    version: u64,
}

impl Catalog {
    /// The unfinished re-embedding task.
    ///
    /// # Errors
    /// `Contention` if it changed during every attempt to read it.
    pub async fn reembedding(&self) -> Result<Option<UnfinishedTask>> {
        self.unfinished_task(REEMBEDDING).await
    }

    /// Whether a re-embedding task is unfinished.
    pub async fn is_reembedding(&self) -> Result<bool> {
        Ok(self.active(REEMBEDDING).await?.is_some())
    }

    /// Ends a re-embedding task as done, and its change of the collections to `live`, and invalidates cached answers.
    ///
    /// # Errors
    /// `Conflict` if the task ended meanwhile, or the phase of the change is another.
    pub async fn end_reembedding(
        &self,
        active: ActiveTask,
        task: &Task,
        collections: &CollectionState,
        live: LiveCollections,
    ) -> Result<()> {
        let record = task_changes::put_status(task, Expect::Any, TaskGroup::Unfinished)?;
        let writes = [active.end(), collections.complete(live)?]
            .into_iter()
            .chain(record)
            .chain(Self::invalidate_cached_answers());
        Ok(self.state.apply(writes.chain(self.task_ended_events(task)).collect()).await?)
    }

    /// The write that records that a change to this model was cancelled, so that no start begins it again by itself.
    #[must_use]
    pub fn put_declined_model(model: &str) -> Write {
        Write::put(key::DECLINED, Expect::Any, model.to_owned())
    }

    /// The write that removes the record of a cancelled change.
    #[must_use]
    pub fn clear_declined_model() -> Write {
        Write::delete(key::DECLINED, Expect::Any)
    }

    /// The model of the last cancelled change, unless a change was requested since.
    pub async fn declined_model(&self) -> Result<Option<String>> {
        let record = self.state.get(key::DECLINED).await?;
        let text = record.map(|record| String::from_utf8(record.value.to_vec())).transpose();
        text.map_err(|e| Error::corrupt("read cancelled model change", e))
    }

    /// The measured factor of a model's cosines in graded ranks, if there is one; see `EmbedderProfile::cosine_scale`.
    pub async fn cosine_scale(&self, model: &str) -> Result<Option<f32>> {
        let Some(record) = self.state.get(&key::cosine_scale(model)).await? else { return Ok(None) };
        let CosineScaleV1 { cosine_scale } =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read cosine scale", e))?;
        Ok(Some(cosine_scale))
    }

    /// Stores the factor of a model's cosines, removes the one of earlier versions and invalidates cached answers.
    pub async fn put_cosine_scale(&self, model: &str, cosine_scale: f32) -> Result<()> {
        let record = serde_json::to_vec(&CosineScaleV1 { cosine_scale });
        let record = record.map_err(|e| Error::corrupt("write cosine scale", e))?;
        let put = Write::put(key::cosine_scale(model), Expect::Any, record);
        let remove = Write::delete(key::measured_spread(model), Expect::Any);
        Ok(self
            .state
            .apply([put, remove].into_iter().chain(Self::invalidate_cached_answers()).collect())
            .await?)
    }

    /// Records that documents may lack dense vectors or have unreferenced points.
    /// [`mark_embedded`](Self::mark_embedded) removes the record.
    pub async fn mark_unembedded(&self, documents: &[DocId]) -> Result<()> {
        let notes = documents.iter().map(|&id| Write::put(key::unembedded(id), Expect::Any, Vec::new()));
        Ok(self.state.apply(notes.collect()).await?)
    }

    /// Up to `limit` notes of documents that lack dense vectors, beyond that of `after`. Some documents may have been deleted
    /// since.
    pub async fn unembedded(&self, after: Option<DocId>, limit: usize) -> Result<Vec<Unembedded>> {
        let after = after.map(key::unembedded);
        let records = self.state.scan(key::UNEMBEDDED, after.as_deref(), ScanOrder::Ascending, limit).await?;
        let notes = records.into_iter().filter_map(|(key, record)| {
            let doc_id = key.strip_prefix(key::UNEMBEDDED)?.parse().ok()?;
            Some(Unembedded { doc_id, version: record.version })
        });
        Ok(notes.collect())
    }

    /// Records that a document has dense vectors and invalidates cached answers. A note that was written again since it was
    /// read stays: another revision was published without vectors meanwhile.
    pub async fn mark_embedded(&self, note: &Unembedded) -> Result<()> {
        let delete = Write::delete(key::unembedded(note.doc_id), Expect::Version(note.version));
        let step = [delete].into_iter().chain(Self::invalidate_cached_answers()).collect();
        match self.state.apply(step).await {
            Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Whether the value of a cosine scale record can be read.
pub(crate) fn is_cosine_scale(value: &[u8]) -> bool {
    serde_json::from_slice::<CosineScaleV1>(value).is_ok()
}
