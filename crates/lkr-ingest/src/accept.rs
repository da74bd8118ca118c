//! Accepting documents: new ones, replacements, and upserts by source.

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use lkr_catalog::{Acceptance, Catalog, Idempotency, IdempotencyRecord, Task};
use lkr_domain::{Clock, Dedup, DocId, SpaceName};
use lkr_state::Write;
use tokio::sync::Mutex;

use crate::{
    Error, ErrorKind, Ports, Result, Submission,
    item::Item,
    staging::StagedDocument,
    state::IngestState,
    upsert::{self, Target},
};

/// The contents of one submission that are stored at once. Chosen, not measured.
const STORED_AT_ONCE: usize = 16;

/// Accepts one document. `None` if it would replace a document that is not live.
pub(crate) async fn accept_one(
    state: &IngestState,
    item: Item,
    mut submission: Submission,
) -> Result<Option<Task>> {
    let idempotency = submission.idempotency.take();
    let accepted = accept(state, vec![(item, submission)], idempotency.as_ref()).await?;
    Ok(accepted.and_then(|tasks| tasks.into_iter().next()))
}

/// Accepts all documents or none. `None` if one would replace a document that is not live. For an idempotency key that was
/// used before, returns the tasks of then in their current state.
pub(crate) async fn accept(
    state: &IngestState,
    items: Vec<(Item, Submission)>,
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>> {
    // Submissions for the same document would only conflict with each other.
    let _lock = match &*items {
        [(Item { replaces: Some(doc_id), .. }, _)] => state.submission_locks.lock(doc_id).await,
        [(Item { source, .. }, Submission { upsert: Some(_), space, .. })] if !source.is_empty() => {
            state.submission_locks.lock((space, source)).await
        }
        _ => None,
    };
    let staged: Vec<_> =
        items.into_iter().map(|(item, submission)| StagedDocument::new(item, submission)).collect();
    let staged = Mutex::new(staged);
    let attempt = || async { try_accept(state, &mut staged.lock().await, idempotency).await };
    let accepted = state.ports.catalog.retry_on_conflict("accept document", attempt).await;
    let tasks = accepted.as_ref().ok().and_then(Option::as_ref).map_or(&[][..], Vec::as_slice);
    for document in staged.into_inner() {
        document.discard_unless_accepted(&state.ports, tasks).await;
    }
    accepted
}

async fn try_accept(
    state: &IngestState,
    staged: &mut [StagedDocument],
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>> {
    // Another process that has taken the place of this one would not find the content.
    state.ports.peers.verify()?;
    let catalog = &state.ports.catalog;
    let before = match idempotency {
        Some(idempotency) => catalog.idempotency_record(idempotency).await?,
        None => IdempotencyRecord::default(),
    };
    if let Some(tasks) = before.tasks()? {
        return Ok(Some(tasks));
    }
    let no_sweep = match state.ports.peers.is_shared() {
        true => Some(catalog.no_sweep().await?),
        false => None,
    };
    let Some((acceptances, mut writes)) = prepare(state, staged).await? else {
        return Ok(None);
    };
    writes.extend(no_sweep);
    let tasks = || acceptances.iter().map(|acceptance| &acceptance.task);
    if let Some(idempotency) = idempotency {
        writes.push(idempotency.remember(tasks(), &before)?);
    }
    if let Err(error) = catalog.accept(&acceptances, writes).await {
        let error = Error::from(error);
        // A failed step may have been written nevertheless; one that lost its compare-and-set was not.
        if error.kind() == ErrorKind::Conflict || !is_accepted(catalog, &acceptances).await {
            return Err(error);
        }
    }
    let tasks: Vec<Task> = acceptances.into_iter().map(|acceptance| acceptance.task).collect();
    state.queueing.push(&tasks).await;
    Ok(Some(tasks))
}

async fn is_accepted(catalog: &Catalog, acceptances: &[Acceptance]) -> bool {
    let Some(first) = acceptances.first() else { return true };
    matches!(catalog.task(first.task.task_id).await, Ok(Some(_)))
}

/// Finds the document that each submission replaces, stores the contents, and makes the records to write. `None` if one would
/// replace a document that is not live.
async fn prepare(
    state: &IngestState,
    staged: &mut [StagedDocument],
) -> Result<Option<(Vec<Acceptance>, Vec<Write>)>> {
    let (mut targets, mut writes) = (Vec::with_capacity(staged.len()), Vec::new());
    let upserts = |StagedDocument { item, submission, .. }: &StagedDocument| {
        submission.upsert.map(|_| (submission.space.clone(), item.source.clone()))
    };
    let sources: Vec<Option<(SpaceName, String)>> = staged.iter().map(upserts).collect();
    for (at, document) in staged.iter().enumerate() {
        // Of several upserts of one source, the last counts.
        let later = sources.get(at + 1..).unwrap_or_default();
        let source =
            sources.get(at).filter(|source| source.as_ref().is_some_and(|(_, source)| !source.is_empty()));
        if source.is_some_and(|source| later.contains(source)) {
            targets.push(None);
            continue;
        }
        for expectation in &document.submission.expectations {
            // A step may contain a key once only.
            if writes.iter().all(|write: &Write| write.key != expectation.key) {
                writes.push(expectation.clone());
            }
        }
        let Some(mut target) = find_target(state, document).await? else { return Ok(None) };
        writes.append(&mut target.remember);
        if target.live().is_some() {
            writes.extend((document.submission.on_replace)(target.doc_id));
        }
        targets.push(Some(target));
    }
    store_contents(&state.ports, staged, &targets).await?;
    let clock = state.ports.catalog.clock();
    let acceptances =
        staged.iter().zip(targets).map(|(document, target)| acceptance(clock, document, target));
    Ok(Some((acceptances.collect(), writes)))
}

/// Stores the contents of documents, several at once: mostly they wait for the disk. All end before this returns, so that none is
/// written after a failure of another had it discarded.
async fn store_contents(
    ports: &Ports,
    staged: &mut [StagedDocument],
    targets: &[Option<Target>],
) -> Result<()> {
    let mut contents: Vec<BoxFuture<'_, Result<()>>> = Vec::with_capacity(staged.len());
    for (document, target) in staged.iter_mut().zip(targets) {
        if let Some(Target { doc_id, replaced, .. }) = target {
            contents.push(document.store(ports, *doc_id, replaced.as_ref()).boxed());
        }
    }
    let stored: Vec<Result<()>> = stream::iter(contents).buffer_unordered(STORED_AT_ONCE).collect().await;
    stored.into_iter().collect()
}

/// The task of a staged document. Without a target it has ended: a later document takes its place.
fn acceptance(clock: &dyn Clock, document: &StagedDocument, target: Option<Target>) -> Acceptance {
    let StagedDocument { submission, .. } = document;
    let (created_by, space) = (submission.created_by.clone(), submission.space.clone());
    let Some(target) = target else {
        let task = Task::ingest(clock, DocId::new_by(clock), space, created_by, document.task_input(1));
        return Acceptance { task: task.cancelled(clock.now()), existing: None };
    };
    let mut input = document.task_input(document.revision());
    let live_space = target.live().map(|live| live.space.clone());
    let task = if let Some(live_space) = live_space {
        input.dedup = Dedup::None;
        Task::replace(clock, target.doc_id, live_space, created_by, input)
    } else {
        Task::ingest(clock, target.doc_id, space, created_by, input)
    };
    Acceptance { task, existing: target.replaced }
}

async fn find_target(state: &IngestState, document: &StagedDocument) -> Result<Option<Target>> {
    let StagedDocument { item, submission, .. } = document;
    if let Some(doc_id) = item.replaces {
        let replaced = state.ports.catalog.document_state(doc_id).await?;
        let is_live = replaced.document.is_some();
        return Ok(is_live.then_some(Target { doc_id, replaced: Some(replaced), remember: Vec::new() }));
    }
    match submission.upsert {
        Some(upsert) if !item.source.is_empty() => {
            let place = upsert::Place { space: &submission.space, source: &item.source };
            upsert::find_target(&state.ports, place, &submission.created_by, upsert).await.map(Some)
        }
        _ => Ok(Some(Target::new(state.ports.catalog.clock()))),
    }
}
