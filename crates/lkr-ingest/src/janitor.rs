//! Collects garbage, and queues the unfinished tasks that are not queued.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use lkr_catalog::{Garbage, Task, TaskKind};
use lkr_vectors::{Condition, Filter};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Ports, Result, collections::delete_everywhere, gc::Gc,
    missing_fingerprints::add_fingerprints, queueing::enqueue, state::IngestState,
};

/// The number of records that are read at a time.
const BATCH: usize = 100;

/// The revisions that are collected at once: mostly they wait for the disk, which commits concurrent writes together.
const CONCURRENCY: usize = 8;

/// The pause before a task cleans up again while collection is paused.
const PAUSED_COLLECTION: Duration = Duration::from_secs(2);

/// The longest time between two rounds.
const ROUND: Duration = Duration::from_secs(60);

/// How far the timestamps of files may lag behind the clock.
const TIMESTAMP_LAG: Duration = Duration::from_millis(20);

/// Queues every unfinished task. Queued ones keep their place; those queued before tasks had flows get theirs.
pub(crate) async fn requeue_unfinished(ports: &Ports) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let (tasks, next) = ports.catalog.unfinished(after.as_deref(), BATCH).await?;
        for task in tasks {
            if let Some(task) = ports.catalog.task(task).await? {
                enqueue(&*ports.queue, &ports.texts, &task).await?;
            }
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Runs forever.
pub(crate) async fn run(state: Arc<IngestState>) {
    let (mut is_swept, mut has_fingerprints) = (false, false);
    loop {
        // While collection is paused, the next round will sweep.
        if let Some(_collecting) = state.gc.try_collect().filter(|_| !is_swept) {
            sweep(&state).await;
            is_swept = true;
        }
        if !has_fingerprints {
            match add_fingerprints(&state.ports, &state.duplicates).await {
                Ok(()) => has_fingerprints = true,
                Err(error) => tracing::warn!(%error, "cannot add missing fingerprints; will retry"),
            }
        }
        if let Err(error) = round(&state).await {
            tracing::warn!(%error, "garbage collection failed; will retry");
        }
        state.gc.wait(ROUND).await;
    }
}

async fn round(state: &IngestState) -> Result<()> {
    if state.queueing.take_incomplete()
        && let Err(error) = requeue_unfinished(&state.ports).await
    {
        state.queueing.mark_incomplete();
        return Err(error);
    }
    state.changes.repair_all().await?;
    collect_all(state).await?;
    let oldest = state.ports.catalog.now() - state.options.retention;
    while state.ports.catalog.forget_tasks(oldest, BATCH).await? == BATCH {}
    Ok(())
}

async fn collect_all(state: &IngestState) -> Result<()> {
    let mut after: Option<Garbage> = None;
    loop {
        let mut garbage = state.ports.catalog.garbage(after.as_ref(), BATCH).await?;
        stream::iter(&garbage)
            .for_each_concurrent(CONCURRENCY, async |item| {
                // One revision that cannot be collected does not block the others.
                if let Err(error) = collect(&state.ports, &state.gc, item).await
                    && error.kind() != ErrorKind::Waiting(PAUSED_COLLECTION)
                {
                    let Garbage { doc_id, revision, .. } = item;
                    tracing::warn!(%doc_id, revision, %error, "cannot collect a revision; will retry");
                }
            })
            .await;
        if garbage.len() < BATCH {
            return Ok(());
        }
        after = garbage.pop();
    }
}

async fn collect(ports: &Ports, gc: &Gc, garbage: &Garbage) -> Result<()> {
    let Some(_collecting) = gc.try_collect() else {
        let kind = ErrorKind::Waiting(PAUSED_COLLECTION);
        return Err(Error::new(kind, "collect garbage", "garbage collection is paused"));
    };
    let filter = Filter::only(Condition::Revision(garbage.doc_id, garbage.revision));
    delete_everywhere(&*ports.vectors, &filter).await?;
    ports.texts.delete(garbage.doc_id, garbage.revision).await?;
    if let Some(path) = &garbage.original {
        ports.originals.delete(path).await?;
    }
    Ok(ports.catalog.forget_garbage(garbage).await?)
}

/// Removes what a task stored that has ended or was superseded, unless it is live.
pub(crate) async fn clean_up_after(state: &IngestState, task: &Task) -> Result<()> {
    if task.kind == TaskKind::Reembed {
        return state.model_change.drop_unused_collections(&state.ports).await;
    }
    let Some(garbage) = Garbage::of_task(task).filter(|_| task.result.is_none()) else { return Ok(()) };
    if state.ports.catalog.is_referenced(garbage.doc_id, garbage.revision).await? {
        return Ok(());
    }
    collect(&state.ports, &state.gc, &garbage).await
}

/// Removes what killed processes stored before any record referred to it.
async fn sweep(state: &IngestState) {
    let before = state.opened - TIMESTAMP_LAG;
    if let Err(error) = sweep_uploads(&state.ports, before).await {
        tracing::warn!(%error, "cannot sweep unreferenced originals; the next start will");
    }
    if let Err(error) = sweep_texts(&state.ports, before).await {
        tracing::warn!(%error, "cannot sweep unreferenced texts; the next start will");
    }
}

/// Removes texts written before `before` to which no document or task refers: the process ended before accepting them.
async fn sweep_texts(ports: &Ports, before: OffsetDateTime) -> Result<()> {
    for (doc_id, revision) in ports.texts.written_before(before).await? {
        let is_known = ports.catalog.is_referenced(doc_id, revision).await?;
        if !is_known && let Err(error) = ports.texts.delete(doc_id, revision).await {
            tracing::warn!(%doc_id, %error, "cannot delete a text; the next start will");
        }
    }
    Ok(())
}

/// Removes originals whose upload began before `before` and whose documents were not accepted.
async fn sweep_uploads(ports: &Ports, before: OffsetDateTime) -> Result<()> {
    let mut after = None;
    loop {
        let uploads = ports.catalog.uploads(after.as_ref(), BATCH).await?;
        for upload in uploads.iter().filter(|upload| upload.begun < before) {
            // One original that cannot be removed does not block the others.
            if let Err(error) = ports.originals.delete(&upload.path).await {
                let doc_id = upload.doc_id;
                tracing::warn!(%doc_id, %error, "cannot delete an original; the next start will");
                continue;
            }
            ports.catalog.forget_upload(upload).await?;
        }
        if uploads.len() < BATCH {
            return Ok(());
        }
        after = uploads.into_iter().next_back();
    }
}
