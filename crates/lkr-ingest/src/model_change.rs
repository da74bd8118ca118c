//! Accepting a change of the embedding model.

use std::sync::atomic::{AtomicU32, Ordering};

use lkr_catalog::{Catalog, ModelName, Task, TaskKind};
use lkr_domain::Creator;
use lkr_models::EmbedderProfile;
use lkr_state::Write;
use tokio::sync::{Mutex, Notify};

use crate::{
    Ports, Result,
    collections::{drop_unused, live_model},
    point_writer::abandon,
    queueing::Queueing,
};

/// Why the embedding model changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReembedTrigger {
    /// The service was started with another model. A change that a person cancelled is not begun again.
    AtStart,
    /// A person chose another model.
    Actor(Creator),
}

/// Coordinates the change of the embedding model.
#[derive(Debug, Default)]
pub(crate) struct ModelChange {
    /// Serialises accepting a change and dropping collections in this process.
    decision: Mutex<()>,
    /// Wakes the backfill of missing vectors.
    pub(crate) wake_backfill: Notify,
    /// The consecutive failures of the model that documents are re-embedded with.
    failures: AtomicU32,
}

impl ModelChange {
    /// Counts a failure of the model. Returns the number of failures before it.
    pub(crate) fn count_failure(&self) -> u32 {
        self.failures.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn reset_failures(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Accepts a task that re-embeds all documents with `model`, and cancels an unfinished change to another model. Returns
    /// the task; `None` if there is nothing to do.
    pub(crate) async fn accept(
        &self,
        ports: &Ports,
        queueing: &Queueing,
        model: Option<&EmbedderProfile>,
        trigger: &ReembedTrigger,
    ) -> Result<Option<Task>> {
        let model = model.map(|profile| ModelName { id: profile.id.clone(), name: profile.name.clone() });
        let _decision = self.decision.lock().await;
        let attempt = || try_accept(ports, model.as_ref(), trigger);
        let accepted = ports.catalog.retry_on_conflict("change the embedding model", attempt).await;
        // A failed step may have been written nevertheless.
        let accepted = accepted.inspect_err(|_| queueing.requeue_later())?;
        queueing.push(accepted.as_slice()).await;
        self.wake_backfill.notify_one();
        Ok(accepted)
    }

    /// Drops the collections of changes that were cancelled or finished.
    pub(crate) async fn drop_unused_collections(&self, ports: &Ports) -> Result<()> {
        // One after another is enough. A change that is accepted meanwhile has others.
        let _decision = self.decision.lock().await;
        let dropped = drop_unused(&*ports.vectors, &ports.catalog).await;
        self.wake_backfill.notify_one();
        dropped
    }
}

async fn try_accept(
    ports: &Ports,
    model: Option<&ModelName>,
    trigger: &ReembedTrigger,
) -> Result<Option<Task>> {
    let catalog = &ports.catalog;
    let unfinished = catalog.reembedding().await?;
    let unfinished = unfinished.as_ref();
    let Some(model) = model else {
        // A start without a model does not mean that there will be none.
        if let (ReembedTrigger::Actor(_), Some(unfinished)) = (trigger, unfinished) {
            let collections = abandon(&catalog.collection_state().await?)?;
            catalog.cancel(unfinished, vec![collections]).await?;
        }
        return Ok(None);
    };
    let is_same = |named: &ModelName| named.id == model.id;
    if let Some(same) = unfinished.filter(|now| now.task.input.model.as_ref().is_some_and(is_same)) {
        return Ok(Some(same.task.clone()));
    }
    if live_model(&*ports.vectors).await?.as_ref() == Some(&model.id) {
        // Among several processes, one may start that does not know of the change yet.
        let may_cancel = matches!(trigger, ReembedTrigger::Actor(_)) || !ports.peers.is_shared();
        if let Some(unfinished) = unfinished.filter(|_| may_cancel) {
            let collections = abandon(&catalog.collection_state().await?)?;
            catalog.cancel(unfinished, vec![Catalog::clear_declined_model(), collections]).await?;
        }
        return Ok(None);
    }
    let created_by = match trigger {
        ReembedTrigger::AtStart if catalog.declined_model().await?.as_ref() == Some(&model.id) => {
            tracing::warn!(
                model = model.name,
                "the change to this model was cancelled; searches keep using the previous one"
            );
            return Ok(None);
        }
        ReembedTrigger::AtStart => Creator::default(),
        ReembedTrigger::Actor(creator) => creator.clone(),
    };
    let task = Task::reembed(catalog.clock(), created_by, model.clone());
    let mut alongside = vec![Catalog::clear_declined_model()];
    if unfinished.is_some() {
        alongside.push(abandon(&catalog.collection_state().await?)?);
    }
    catalog.accept_reembedding(&task, unfinished, alongside).await?;
    tracing::info!(model = model.name, task = %task.task_id, "re-embedding all documents");
    Ok(Some(task))
}

/// The record to write when a task is cancelled, so that no start begins the same change of the model again.
pub(crate) fn decline_on_cancel(task: &Task) -> Vec<Write> {
    let model = task.input.model.as_ref().filter(|_| task.kind == TaskKind::Reembed);
    model.map(|model| Catalog::put_declined_model(&model.id)).into_iter().collect()
}
