//! What is known of embedding: documents that lack vectors, the one task that changes the model, and how far a model's
//! cosines spread.

use lkr_domain::DocId;
use lkr_state::{Expect, ScanOrder, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{
    ActiveTask, Catalog, CorpusSlot, Error, Result, Task, TaskSubject, UnfinishedTask, catalog::key,
    task_record::write_task,
};

/// What a task that changes the embedding model is about.
const REEMBEDDING: TaskSubject = TaskSubject::Corpus(CorpusSlot::REEMBEDDING);

#[derive(Debug, Serialize, Deserialize)]
struct SpreadV1 {
    cosine_scale: f32,
}

impl Catalog {
    /// The unfinished task that changes the embedding model.
    ///
    /// # Errors
    /// `Contention` if it changed during each of the attempts to read it.
    pub async fn reembedding(&self) -> Result<Option<UnfinishedTask>> {
        self.unfinished_task(REEMBEDDING).await
    }

    /// Whether a task that changes the model is unfinished.
    pub async fn is_reembedding(&self) -> Result<bool> {
        Ok(self.active(REEMBEDDING).await?.is_some())
    }

    /// Ends a task that changed the model as done, and has searches show it.
    ///
    /// # Errors
    /// `Conflict` where it ended meanwhile.
    pub async fn end_reembedding(&self, active: ActiveTask, task: &Task) -> Result<()> {
        let put = Write::put(key::task(task.task_id), Expect::Any, write_task(task)?);
        let writes = [active.end(), put, Write::increment(key::GENERATION)];
        Ok(self.state.apply(writes.into_iter().chain(self.told_task(task)).collect()).await?)
    }

    /// The write that remembers that a change to this model was cancelled, so that no start begins it by itself.
    #[must_use]
    pub fn decline(model: &str) -> Write {
        Write::put(key::DECLINED, Expect::Any, model.to_owned())
    }

    /// The write that forgets what was declined.
    #[must_use]
    pub fn undecline() -> Write {
        Write::delete(key::DECLINED, Expect::Any)
    }

    /// The model of the last change that was cancelled, unless one was asked for since.
    pub async fn declined(&self) -> Result<Option<String>> {
        let record = self.state.get(key::DECLINED).await?;
        let text = record.map(|record| String::from_utf8(record.value.to_vec())).transpose();
        text.map_err(|e| Error::corrupt("read declined model", e))
    }

    /// The factor of a model's cosines in graded ranks, where it was found out; see `EmbedderProfile::cosine_scale`.
    pub async fn cosine_scale(&self, model: &str) -> Result<Option<f32>> {
        let Some(record) = self.state.get(&key::spread(model)).await? else { return Ok(None) };
        let SpreadV1 { cosine_scale } =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read spread of cosines", e))?;
        Ok(Some(cosine_scale))
    }

    /// Writes down the factor of a model's cosines, and has searches show it.
    pub async fn put_cosine_scale(&self, model: &str, cosine_scale: f32) -> Result<()> {
        let record = serde_json::to_vec(&SpreadV1 { cosine_scale });
        let record = record.map_err(|e| Error::corrupt("write spread of cosines", e))?;
        Ok(self
            .state
            .apply(vec![
                Write::put(key::spread(model), Expect::Any, record),
                Write::increment(key::GENERATION),
            ])
            .await?)
    }

    /// Notes that documents may lack dense vectors, or have points that nobody counts on, until
    /// [`embedded`](Self::embedded) takes that back.
    pub async fn embedding(&self, documents: &[DocId]) -> Result<()> {
        let notes = documents.iter().map(|&id| Write::put(key::unembedded(id), Expect::Any, Vec::new()));
        Ok(self.state.apply(notes.collect()).await?)
    }

    /// Up to `limit` documents beyond `after` that lack dense vectors. They may be gone by now.
    pub async fn unembedded(&self, after: Option<DocId>, limit: usize) -> Result<Vec<DocId>> {
        let after = after.map(key::unembedded);
        let records = self.state.scan(key::UNEMBEDDED, after.as_deref(), ScanOrder::Ascending, limit).await?;
        Ok(records.iter().filter_map(|(key, _)| key.strip_prefix(key::UNEMBEDDED)?.parse().ok()).collect())
    }

    /// Notes that documents have dense vectors now, and that searches may show it.
    pub async fn embedded(&self, documents: &[DocId]) -> Result<()> {
        let notes = documents.iter().map(|&id| Write::delete(key::unembedded(id), Expect::Any));
        Ok(self.state.apply(notes.chain([Write::increment(key::GENERATION)]).collect()).await?)
    }
}

/// Whether a record of a spread can be read.
pub(crate) fn is_spread(value: &[u8]) -> bool {
    serde_json::from_slice::<SpreadV1>(value).is_ok()
}
