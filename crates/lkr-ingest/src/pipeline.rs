//! One document through its stages.

use std::time::{Duration, Instant};

use lkr_catalog::{
    ActiveTask, DocumentResult, Duplicate, ModelUsage, Progress, Stage, Stored, Task, TaskInput, TaskKind,
    TaskResult,
};
use lkr_domain::{Document, Fingerprint};
use lkr_state::Write;
use tokio::sync::watch;

use crate::{
    Error, ErrorKind, Result,
    collection_sets::CollectionSet,
    dedup::{Claim, Decision, decide},
    describe::describe,
    draft::{Text, draft, parse},
    ingestor::{CONTENDED_TRIES, Inner},
    long_texts::Share,
    publish::publish,
    reuse::Earlier,
    store::store,
};

/// How a task stands, for whoever writes it down.
pub(crate) type Report = watch::Sender<(Stage, Progress)>;

/// Takes the document of `task` from its text to being visible.
pub(crate) async fn ingest(inner: &Inner, active: ActiveTask, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    report.send_replace((Stage::Parse, Progress::default()));
    let (text, share) = text(inner, task).await?;
    let (parsed, fingerprint) = parse(inner, text).await?;
    // The claim is held until the document is visible.
    let Some((mut claim, mut free)) = decided(inner, active, task, &fingerprint, begun).await? else {
        return Ok(());
    };
    report.send_replace((Stage::Layer, Progress::default()));
    let (mut draft, mut warnings) = draft(inner, task, parsed, fingerprint.clone(), share).await?;
    let told = describe(inner, &mut draft, task, report).await?;
    let shelf = inner.shelves.enter(&inner.ports, task.doc_id()?).await?;
    let earlier = earlier(inner, &shelf, task).await?;
    let (embedded, category) = store(inner, &shelf, &mut draft, &earlier, report).await?;
    report.send_replace((Stage::Publish, Progress::default()));
    warnings.extend(told.warnings.into_iter().chain(category.warning));
    warnings.extend(shelf.embedder().is_none().then(|| NO_MODEL.to_owned()));
    let result = DocumentResult {
        title: draft.document.title.clone(),
        duplicate_of: None,
        category: draft.document.category.clone(),
        language: draft.document.language.clone(),
        counts: draft.document.counts,
        embedded,
        usage: sum(told.usage, category.usage),
        warnings,
        elapsed_ms: elapsed_ms(begun),
    };
    let done = done(task, result);
    let has_dense = shelf.embedder().is_some();
    while !publish(inner, &draft, &done, has_dense, &free).await? {
        // Another process may have made a document of this text.
        drop(claim);
        let Some(decided) = decided(inner, active, task, &fingerprint, begun).await? else { return Ok(()) };
        (claim, free) = decided;
    }
    Ok(())
}

const fn sum(one: ModelUsage, other: ModelUsage) -> ModelUsage {
    ModelUsage { calls: one.calls + other.calls, tokens: one.tokens + other.tokens }
}

/// The right to make a document of a text, and what the step that publishes it has to expect.
type Right<'a> = (Option<Claim<'a>>, Vec<Write>);

/// Decides whether the text becomes a document; `None` where it is there already, and the task has ended.
async fn decided<'a>(
    inner: &'a Inner,
    active: ActiveTask,
    task: &Task,
    fingerprint: &Fingerprint,
    begun: Instant,
) -> Result<Option<Right<'a>>> {
    for _ in 0..CONTENDED_TRIES {
        match decide(inner, task.task_id, task.input.dedup, fingerprint).await? {
            Decision::UniqueText(claim, free) => return Ok(Some((claim, free))),
            Decision::Later => {
                // What it took to come here is taken again, and should be little of what is waited for.
                let pause = (10 * begun.elapsed()).clamp(LEAST_WAIT, MOST_WAIT);
                return Err(Error::new(ErrorKind::Waiting(pause), "ingest", "a twin is under way"));
            }
            Decision::Duplicate(found, earlier) => {
                match end_duplicate(inner, active, task, found, &earlier, begun).await {
                    // The earlier one changed, or is gone; or this one is not wanted any more.
                    Err(error) if error.kind() == ErrorKind::Overtaken => {
                        if inner.ports.catalog.active(active.subject).await? != Some(active) {
                            return Err(error);
                        }
                    }
                    ended => return ended.map(|()| None),
                }
            }
        }
    }
    Err(Error::new(ErrorKind::StoreAway, "ingest", "what it is a duplicate of kept changing"))
}

/// How long a task waits for the end of its twin's before it is looked at again.
const LEAST_WAIT: Duration = Duration::from_millis(100);
const MOST_WAIT: Duration = Duration::from_secs(10);

/// What a replacement can take over of the document that it replaces.
async fn earlier(inner: &Inner, shelf: &CollectionSet<'_>, task: &Task) -> Result<Earlier> {
    let (TaskKind::Replace, Some(embedder)) = (task.kind, shelf.embedder()) else {
        return Ok(Earlier::default());
    };
    let live = inner.ports.catalog.document(task.doc_id()?).await?;
    let Some(live) = live else { return Ok(Earlier::default()) };
    Earlier::of(inner, embedder, &live.value).await
}

/// Ends the task of a document that is there already: nothing new is stored.
async fn end_duplicate(
    inner: &Inner,
    active: ActiveTask,
    task: &Task,
    found: Duplicate,
    earlier: &Stored<Document>,
    begun: Instant,
) -> Result<()> {
    let document = earlier.value.clone();
    let result = DocumentResult {
        title: document.title,
        duplicate_of: Some(found),
        category: document.category,
        language: document.language,
        counts: document.counts,
        embedded: 0,
        usage: ModelUsage::default(),
        warnings: task.input.warnings.clone(),
        elapsed_ms: elapsed_ms(begun),
    };
    let ended = Task { subject: found.doc_id.into(), ..done(task, result) };
    inner.ports.catalog.end_duplicate(active, &ended, earlier).await?;
    inner.drop_original(task).await;
    inner.garbage.notify_one();
    Ok(())
}

/// The task as it ends.
fn done(task: &Task, result: DocumentResult) -> Task {
    task.done(Stage::Publish, 1, TaskResult::Document(result))
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

const NO_MODEL: &str = "no embedding model: the document is found by its words alone until there is one";

/// The text of the task's document. Where the store answers and only this text cannot be read, that is an attempt of
/// this task, which must not wait for ever for one damaged file.
async fn text(inner: &Inner, task: &Task) -> Result<(Text, Share)> {
    let texts = &inner.ports.texts;
    let (doc_id, revision) = (task.doc_id()?, task.input.revision);
    let TaskInput { text_sha256, blocks_sha256, .. } = &task.input;
    let read = async {
        let length = texts.length(doc_id, revision).await?;
        let share = inner.long_texts.share(length).await;
        let text = texts.get(doc_id, revision, text_sha256.as_deref()).await?;
        let blocks = match task.input.extracted {
            true => Some(texts.blocks(doc_id, revision, blocks_sha256.as_deref()).await?),
            false => None,
        };
        Ok::<_, lkr_catalog::Error>((Text { text, blocks }, share))
    };
    match read.await {
        Err(error) if error.is_retryable() && texts.health().await.is_ok() => {
            Err(Error::new(ErrorKind::Unreadable, "read text", error))
        }
        read => Ok(read?),
    }
}
