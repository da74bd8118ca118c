//! Collects what nobody shows any more, and queues again what an earlier process left.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use lkr_catalog::{Garbage, Task, TaskKind};
use lkr_vectors::{Condition, Filter};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Result, change, collection_sets::delete_everywhere, ingestor::Inner, reembed, upgrade,
};

/// How many records are handled at a time.
const BATCH: usize = 100;

/// How many revisions are collected at once.
const AT_ONCE: usize = 8;

/// How long whoever wants to collect waits while nothing may be.
const HELD_PAUSE: Duration = Duration::from_secs(2);

/// How often the janitor looks around unasked.
const ROUND: Duration = Duration::from_secs(60);

/// Queues every task that has not ended; those that are queued already stay where they are.
pub(crate) async fn requeue(inner: &Inner) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let (tasks, next) = inner.ports.catalog.unfinished(after.as_deref(), BATCH).await?;
        for task in tasks {
            inner.ports.queue.push(task, Duration::ZERO).await?;
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Collects for ever.
pub(crate) async fn run(inner: Arc<Inner>) {
    let (mut swept, mut printed) = (false, false);
    loop {
        // Where nothing may be collected, the next round is early enough.
        if let Some(_collecting) = inner.collecting.try_read().ok().filter(|_| !swept) {
            sweep(&inner).await;
            swept = true;
        }
        if !printed {
            match upgrade::fingerprints(&inner).await {
                Ok(()) => printed = true,
                Err(error) => tracing::warn!(%error, "fingerprints will be made later"),
            }
        }
        if let Err(error) = round(&inner).await {
            tracing::warn!(%error, "tidying up failed; it will be tried again");
        }
        let _ = tokio::time::timeout(ROUND, inner.garbage.notified()).await;
    }
}

/// Removes what processes that were killed left before anything knew of it.
async fn sweep(inner: &Inner) {
    if let Err(error) = sweep_uploads(inner).await {
        tracing::warn!(%error, "originals that belong to nothing could not be collected");
    }
    if let Err(error) = sweep_texts(inner).await {
        tracing::warn!(%error, "texts that belong to nothing could not be collected");
    }
}

/// After a task that ended or was overtaken: what it stored goes, unless it is what is shown.
pub(crate) async fn tidy_after(inner: &Inner, task: &Task) -> Result<()> {
    if task.kind == TaskKind::Reembed {
        return reembed::tidy(inner).await;
    }
    let Some(garbage) = Garbage::of_task(task).filter(|_| task.result.is_none()) else { return Ok(()) };
    if inner.ports.catalog.knows(garbage.doc_id, garbage.revision).await? {
        return Ok(());
    }
    collect(inner, &garbage).await
}

async fn round(inner: &Inner) -> Result<()> {
    if inner.unqueued.swap(false, Ordering::Relaxed)
        && let Err(error) = requeue(inner).await
    {
        inner.unqueued.store(true, Ordering::Relaxed);
        return Err(error);
    }
    change::repair_all(inner).await?;
    let mut after: Option<Garbage> = None;
    loop {
        let mut garbage = inner.ports.catalog.garbage(after.as_ref(), BATCH).await?;
        // Some at once, because what they wait for is the disk, which takes several writes as one.
        stream::iter(&garbage)
            .for_each_concurrent(AT_ONCE, async |item| {
                // One that cannot be collected keeps no other from being.
                if let Err(error) = collect(inner, item).await
                    && error.kind() != ErrorKind::Waiting(HELD_PAUSE)
                {
                    let Garbage { doc_id, revision, .. } = item;
                    tracing::warn!(%doc_id, revision, %error, "trash could not be collected; it will be tried again");
                }
            })
            .await;
        if garbage.len() < BATCH {
            break;
        }
        after = garbage.pop();
    }
    let oldest = OffsetDateTime::now_utc() - inner.options.retention;
    while inner.ports.catalog.forget_tasks(oldest, BATCH).await? == BATCH {}
    Ok(())
}

async fn collect(inner: &Inner, garbage: &Garbage) -> Result<()> {
    let Ok(_collecting) = inner.collecting.try_read() else {
        return Err(Error::new(ErrorKind::Waiting(HELD_PAUSE), "collect", "nothing is collected for now"));
    };
    let filter = Filter::only(Condition::Revision(garbage.doc_id, garbage.revision));
    delete_everywhere(&*inner.ports.vectors, &filter).await?;
    inner.ports.texts.delete(garbage.doc_id, garbage.revision).await?;
    if let Some(path) = &garbage.original {
        inner.ports.originals.delete(path).await?;
    }
    Ok(inner.ports.catalog.forget_garbage(garbage).await?)
}

/// Removes texts, written before this process began, that neither a document nor a task knows: those of a document
/// that was not accepted because the process ended first.
async fn sweep_texts(inner: &Inner) -> Result<()> {
    for (doc_id, revision) in inner.ports.texts.written_before(inner.opened).await? {
        let known = inner.ports.catalog.knows(doc_id, revision).await?;
        if !known && let Err(error) = inner.ports.texts.delete(doc_id, revision).await {
            tracing::warn!(%doc_id, %error, "a text could not be removed; the next start tries again");
        }
    }
    Ok(())
}

/// Removes originals, of which the storing began before this process did, whose documents were not accepted.
async fn sweep_uploads(inner: &Inner) -> Result<()> {
    let mut after = None;
    loop {
        let uploads = inner.ports.catalog.uploads(after.as_ref(), BATCH).await?;
        for upload in uploads.iter().filter(|upload| upload.begun < inner.opened) {
            // One that cannot be removed keeps no other from being.
            if let Err(error) = inner.ports.originals.delete(&upload.path).await {
                let doc_id = upload.doc_id;
                tracing::warn!(%doc_id, %error, "an original could not be removed; the next start tries again");
                continue;
            }
            inner.ports.catalog.forget_upload(upload).await?;
        }
        if uploads.len() < BATCH {
            return Ok(());
        }
        after = uploads.into_iter().next_back();
    }
}
