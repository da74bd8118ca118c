//! Collects garbage, and queues the unfinished tasks that are not queued.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use lkr_catalog::{Garbage, Task, TaskKind, TextOwner, l1_id};
use lkr_domain::{DocId, Layer};
use lkr_vectors::{Condition, Filter, Include};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Ports, Result, collections::delete_everywhere, gc::Gc, live_collections::align_aliases,
    missing_fingerprints::add_fingerprints, options::backoff, point_writer::end_abandoned_phase,
    queueing::enqueue_all, state::IngestState,
};

/// The number of records that are read at a time.
const BATCH: usize = 100;

/// The number of short records that are read at a time.
const LONG_BATCH: usize = 1_000;

/// The revisions that are collected at once: mostly they wait for the disk, which commits concurrent writes together.
const CONCURRENCY: usize = 8;

/// The pause before a task cleans up again while collection is paused.
const PAUSED_COLLECTION: Duration = Duration::from_secs(2);

/// The longest time between two rounds.
const ROUND: Duration = Duration::from_secs(60);

/// The longest time between two rounds if other processes leave work too.
const SHARED_ROUND: Duration = Duration::from_secs(15);

/// The pause after a round that failed or is to be repeated. It doubles with each further one, up to the longest time between two
/// rounds.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The role of the process that does the work of all.
const ROLE: &str = "janitor";

/// The time between two looks for what was stored and not accepted, among several processes.
const SWEEP_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// The longest time between storing a document's text and accepting it. What is stored for longer is stored again before it
/// is accepted.
pub(crate) const ACCEPTANCE: Duration = Duration::from_secs(3600);

/// How far the timestamps of files may lag behind the clock.
const TIMESTAMP_LAG: Duration = Duration::from_millis(20);

/// Queues every unfinished task. Queued ones keep their place; those queued before tasks had flows get theirs.
pub(crate) async fn requeue_unfinished(ports: &Ports) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let (tasks, next) = ports.catalog.unfinished(after.as_deref(), BATCH).await?;
        let tasks = ports.catalog.tasks_with(&tasks).await?;
        let mut queued = enqueue_all(&*ports.queue, &ports.texts, tasks.iter());
        while let Some((_, queued)) = queued.next().await {
            queued?;
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Whether tasks are unfinished that are not queued: their processes ended before they queued them.
async fn lacks_tasks(ports: &Ports) -> Result<bool> {
    let (mut unfinished, mut after) = (0_u64, None::<String>);
    loop {
        let (tasks, next) = ports.catalog.unfinished(after.as_deref(), LONG_BATCH).await?;
        unfinished += tasks.len() as u64;
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    // Tasks that are accepted or end meanwhile make no difference that lasts.
    Ok(unfinished > ports.queue.len().await?)
}

/// Runs forever. Every process repairs what it left itself; the rest is done by one process for all.
pub(crate) async fn run(state: Arc<IngestState>) {
    let (mut sweeping, mut has_fingerprints, mut failed_rounds) = (Sweeping::new(), false, 0_u32);
    let peers = &state.ports.peers;
    loop {
        let leads = peers.leads(ROLE).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot find out which process collects garbage; will retry");
            false
        });
        if leads {
            sweeping.sweep_if_due(&state).await;
        }
        if leads && !has_fingerprints {
            match add_fingerprints(&state.ports, &state.duplicates).await {
                Ok(()) => has_fingerprints = true,
                Err(error) => tracing::warn!(%error, "cannot add missing fingerprints; will retry"),
            }
        }
        let done = async {
            round(&state).await?;
            if leads { round_for_all(&state).await } else { Ok(true) }
        };
        let longest = if peers.is_shared() { SHARED_ROUND } else { ROUND };
        let pause = match done.await {
            Ok(true) => {
                failed_rounds = 0;
                longest
            }
            incomplete => {
                let pause = backoff(FIRST_RETRY, failed_rounds, longest);
                if let Err(error) = incomplete {
                    tracing::warn!(%error, ?pause, "garbage collection failed; will retry");
                }
                failed_rounds = failed_rounds.saturating_add(1);
                pause
            }
        };
        state.gc.wait(pause).await;
    }
}

/// Repairs what this process left.
async fn round(state: &IngestState) -> Result<()> {
    if state.queueing.take_incomplete()
        && let Err(error) = requeue_unfinished(&state.ports).await
    {
        state.queueing.mark_incomplete();
        return Err(error);
    }
    state.changes.repair_all().await
}

/// Repairs what other processes left, and removes what nothing refers to. False if that is to be repeated soon.
async fn round_for_all(state: &IngestState) -> Result<bool> {
    let ports = &state.ports;
    if ports.peers.is_shared() && lacks_tasks(ports).await? {
        requeue_unfinished(ports).await?;
    }
    end_abandoned_phase(&ports.catalog).await?;
    align_aliases(&*ports.vectors, &ports.catalog).await?;
    let is_collected = collect_all(state).await?;
    let oldest = state.ports.catalog.now() - state.options.retention;
    state.ports.catalog.forget_tasks(oldest, BATCH).await?;
    Ok(is_collected)
}

/// False if a revision is to be [collected](collect) again.
async fn collect_all(state: &IngestState) -> Result<bool> {
    let is_collected = AtomicBool::new(true);
    let mut after: Option<Garbage> = None;
    loop {
        let mut garbage = state.ports.catalog.garbage(after.as_ref(), BATCH).await?;
        stream::iter(&garbage)
            .for_each_concurrent(CONCURRENCY, async |item| {
                // One revision that cannot be collected does not block the others.
                match collect_unless_in_use(&state.ports, &state.gc, item).await {
                    Ok(true) => {}
                    Ok(false) => is_collected.store(false, Ordering::Relaxed),
                    Err(error) if error.kind() == ErrorKind::Waiting(PAUSED_COLLECTION) => {}
                    Err(error) => {
                        let Garbage { doc_id, revision, .. } = item;
                        tracing::warn!(%doc_id, revision, %error, "cannot collect a revision; will retry");
                    }
                }
            })
            .await;
        if garbage.len() < BATCH {
            return Ok(is_collected.into_inner());
        }
        after = garbage.pop();
    }
}

/// Nothing that is in use becomes garbage. If it did, this keeps it. False if it is to be [collected](collect) again.
async fn collect_unless_in_use(ports: &Ports, gc: &Gc, garbage: &Garbage) -> Result<bool> {
    let Garbage { doc_id, revision, .. } = garbage;
    if !ports.catalog.is_referenced(*doc_id, *revision).await? {
        return collect(ports, gc, garbage).await;
    }
    tracing::warn!(%doc_id, revision, "kept a revision that was to be collected: it is in use");
    ports.catalog.forget_garbage(garbage).await?;
    Ok(true)
}

/// Removes a revision. False if points of it may be written again, so that it stays garbage and is to be collected again.
async fn collect(ports: &Ports, gc: &Gc, garbage: &Garbage) -> Result<bool> {
    let mut original = garbage.original.as_deref();
    if let Some(path) = original
        && is_original_in_use(ports, garbage.doc_id, path).await?
    {
        original = None;
    }
    // Who gives vectors to a live document notes it before, and may not have noticed that the revision has become garbage.
    let may_be_written = ports.catalog.is_changing(garbage.doc_id).await?;
    let Some(_collecting) = gc.try_collect().await? else {
        let kind = ErrorKind::Waiting(PAUSED_COLLECTION);
        return Err(Error::new(kind, "collect garbage", "garbage collection is paused"));
    };
    let filter = Filter::only(Condition::Revision(garbage.doc_id, garbage.revision));
    delete_everywhere(&*ports.vectors, &filter).await?;
    ports.texts.delete(garbage.doc_id, garbage.revision).await?;
    if let Some(path) = original {
        ports.originals.delete(path).await?;
    }
    if !may_be_written {
        ports.catalog.forget_garbage(garbage).await?;
    }
    Ok(!may_be_written)
}

/// Whether a live document, an unfinished task or a failed attempt names this original of a document. A move gives a document
/// another revision and leaves it its original.
pub(crate) async fn is_original_in_use(ports: &Ports, doc_id: DocId, path: &str) -> Result<bool> {
    let state = ports.catalog.document_state(doc_id).await?;
    let live = state.document.and_then(|document| document.value.original);
    let unfinished = state.unfinished.and_then(|unfinished| unfinished.task.input.original);
    let failed = state.failed_attempts.into_iter().filter_map(|attempt| attempt.original);
    let mut named = live.into_iter().chain(unfinished).map(|original| original.path).chain(failed);
    Ok(named.any(|named| named == path))
}

/// Removes what a task stored that has ended or was superseded, unless it is live.
pub(crate) async fn clean_up_after(state: &IngestState, task: &Task) -> Result<()> {
    if task.kind == TaskKind::Reembed {
        return state.model_change.drop_unused_collections(&state.ports).await;
    }
    let Some(garbage) = Garbage::of_task(task).filter(|_| task.result.is_none()) else { return Ok(()) };
    if state.ports.catalog.is_referenced(garbage.doc_id, garbage.revision).await? {
        // A worker that has lost its lease may have written points again with the tags from before a change.
        return state.changes.begin(garbage.doc_id).await?.revert().await;
    }
    collect(&state.ports, &state.gc, &garbage).await?;
    Ok(())
}

/// When to look for what killed processes stored before any record referred to it.
struct Sweeping {
    /// When it was done last; `None` before the first time.
    last: Option<Instant>,
}

impl Sweeping {
    const fn new() -> Self {
        Self { last: None }
    }

    /// A process alone needs to look once: whatever is older than itself and not referred to was left. Among several, one
    /// looks from time to time for what is older than any acceptance takes.
    async fn sweep_if_due(&mut self, state: &IngestState) {
        let is_shared = state.ports.peers.is_shared();
        let is_due = self.last.is_none_or(|last| is_shared && last.elapsed() > SWEEP_INTERVAL);
        // While collection is paused, a later round sweeps.
        if is_due && matches!(state.gc.try_collect().await, Ok(Some(_))) {
            let before = match is_shared {
                true => state.opened.min(state.ports.catalog.now() - ACCEPTANCE),
                false => state.opened,
            };
            if sweep(state, before - TIMESTAMP_LAG).await {
                self.last = Some(Instant::now());
            }
        }
    }
}

/// Removes what was stored before `before` and no record refers to. False if collection was paused before the end.
async fn sweep(state: &IngestState, before: OffsetDateTime) -> bool {
    // From here on, no process can accept what it stored before.
    if state.ports.peers.is_shared()
        && let Err(error) = state.ports.catalog.begin_sweep().await
    {
        tracing::warn!(%error, "cannot sweep unreferenced texts and originals; will retry");
        return false;
    }
    let uploads = sweep_uploads(state, before).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot sweep unreferenced originals; the next start will");
        true
    });
    let texts = sweep_texts(state, before).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot sweep unreferenced texts; the next start will");
        true
    });
    uploads && texts
}

/// Removes texts written before `before` to which no document or task refers: the process ended before accepting them. A text
/// whose document was ingested is kept: the state store has lost the record. False if collection was paused.
async fn sweep_texts(state: &IngestState, before: OffsetDateTime) -> Result<bool> {
    let ports = &state.ports;
    if ports.catalog.claim_texts(&ports.texts).await? != TextOwner::This {
        tracing::warn!(
            "cannot tell whether the texts belong to this knowledge base; those without a record are not removed"
        );
        return Ok(true);
    }
    for (doc_id, revision) in ports.texts.written_before(before).await? {
        if ports.catalog.is_referenced(doc_id, revision).await? {
            continue;
        }
        if has_root(ports, doc_id, revision).await? && !is_collected(ports, doc_id, revision).await? {
            tracing::warn!(%doc_id, revision, "a document has text and points but no record; 'lkr doctor --repair' restores it");
            continue;
        }
        let Some(_collecting) = state.gc.try_collect().await? else { return Ok(false) };
        if let Err(error) = ports.texts.delete(doc_id, revision).await {
            tracing::warn!(%doc_id, %error, "cannot delete a text; the next start will");
        }
    }
    Ok(true)
}

/// Whether a revision has its L1 point, which is written after all others.
async fn has_root(ports: &Ports, doc_id: DocId, revision: u64) -> Result<bool> {
    let root = ports.vectors.get(&Layer::L1.into(), &[l1_id(doc_id, revision)], Include::Payload).await?;
    Ok(root.iter().any(Option::is_some))
}

/// Whether a revision waits to be collected, or did so until now and is live no more.
async fn is_collected(ports: &Ports, doc_id: DocId, revision: u64) -> Result<bool> {
    Ok(ports.catalog.is_garbage(doc_id, revision).await? || !has_root(ports, doc_id, revision).await?)
}

/// Removes originals whose upload began before `before` and whose documents were not accepted. False if collection was paused.
async fn sweep_uploads(state: &IngestState, before: OffsetDateTime) -> Result<bool> {
    let ports = &state.ports;
    let mut after = None;
    loop {
        let uploads = ports.catalog.uploads(after.as_ref(), BATCH).await?;
        for upload in uploads.iter().filter(|upload| upload.begun < before) {
            let Some(_collecting) = state.gc.try_collect().await? else { return Ok(false) };
            // One original that cannot be removed does not block the others.
            if let Err(error) = ports.originals.delete(&upload.path).await {
                let doc_id = upload.doc_id;
                tracing::warn!(%doc_id, %error, "cannot delete an original; the next start will");
                continue;
            }
            ports.catalog.forget_upload(upload).await?;
        }
        if uploads.len() < BATCH {
            return Ok(true);
        }
        after = uploads.into_iter().next_back();
    }
}
