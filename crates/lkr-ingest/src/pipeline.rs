//! One document through its stages.

use std::time::Instant;

use lkr_catalog::{
    Active, DocumentResult, Duplicate, Progress, Stage, Task, TaskKind, TaskResult, TaskStatus, Usage,
};
use lkr_domain::Document;
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    Error, ErrorKind, Result,
    dedup::{Decision, decide},
    draft::{Text, draft, parse},
    ingestor::Inner,
    long_texts::Share,
    publish::publish,
    reuse::Earlier,
    store::store,
};

/// How a task stands, for whoever writes it down.
pub(crate) type Report = watch::Sender<(Stage, Progress)>;

/// Takes the document of `task` from its text to being visible.
pub(crate) async fn ingest(inner: &Inner, active: Active, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    report.send_replace((Stage::Parse, Progress::default()));
    let (text, share) = text(inner, task).await?;
    let (parsed, fingerprint) = parse(inner, text).await?;
    let decision = decide(inner, task.doc_id, task.input.dedup, &fingerprint).await?;
    // The claim is held until the document is visible.
    let (mut claim, mut free) = match decision {
        Decision::Free(claim, free) => (claim, free),
        Decision::Duplicate(found, document) => {
            return end_duplicate(inner, active, task, found, *document, begun).await;
        }
    };
    report.send_replace((Stage::Layer, Progress::default()));
    let (mut draft, mut warnings) = draft(inner, task, parsed, fingerprint.clone(), share).await?;
    let shelf = inner.shelves.enter().await;
    let earlier = earlier(inner, task).await?;
    let (embedded, warning) = store(inner, &shelf, &mut draft, &earlier, report).await?;
    report.send_replace((Stage::Publish, Progress::default()));
    warnings.extend(warning);
    warnings.extend(inner.ports.embedder.is_none().then(|| NO_MODEL.to_owned()));
    let result = DocumentResult {
        title: draft.document.title.clone(),
        duplicate_of: None,
        category: draft.document.category.clone(),
        language: draft.document.language.clone(),
        counts: draft.document.counts,
        embedded,
        usage: Usage::default(),
        warnings,
        elapsed_ms: elapsed_ms(begun),
    };
    let done = done(task, result);
    let has_dense = shelf.shows_vectors(&inner.ports).await?;
    while !publish(inner, &draft, &done, has_dense, &free).await? {
        // Another process may have made a document of this text.
        drop(claim);
        (claim, free) = match decide(inner, task.doc_id, task.input.dedup, &fingerprint).await? {
            Decision::Free(claim, free) => (claim, free),
            Decision::Duplicate(found, document) => {
                return end_duplicate(inner, active, task, found, *document, begun).await;
            }
        };
    }
    Ok(())
}

/// What a replacement can take over of the document that it replaces.
async fn earlier(inner: &Inner, task: &Task) -> Result<Earlier> {
    let (TaskKind::Replace, Some(embedder)) = (task.kind, &inner.ports.embedder) else {
        return Ok(Earlier::default());
    };
    let live = inner.ports.catalog.document(task.doc_id).await?;
    let Some(live) = live else { return Ok(Earlier::default()) };
    Earlier::of(inner, &**embedder, &live.value).await
}

/// Ends the task of a document that is there already: nothing new is stored.
async fn end_duplicate(
    inner: &Inner,
    active: Active,
    task: &Task,
    found: Duplicate,
    document: Document,
    begun: Instant,
) -> Result<()> {
    let result = DocumentResult {
        title: document.title,
        duplicate_of: Some(found),
        category: document.category,
        language: document.language,
        counts: document.counts,
        embedded: 0,
        usage: Usage::default(),
        warnings: task.input.warnings.clone(),
        elapsed_ms: elapsed_ms(begun),
    };
    let task = Task { doc_id: found.doc_id, ..done(task, result) };
    inner.ports.catalog.end_duplicate(active, &task).await?;
    inner.trash.notify_one();
    Ok(())
}

/// The task as it ends.
fn done(task: &Task, result: DocumentResult) -> Task {
    Task {
        status: TaskStatus::Done,
        stage: Stage::Publish,
        progress: Progress { done: 1, total: 1 },
        updated_at: OffsetDateTime::now_utc(),
        error: None,
        result: Some(TaskResult::Document(result)),
        ..task.clone()
    }
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

const NO_MODEL: &str = "no embedding model: the document is found by its words alone until there is one";

/// The text of the task's document. Where the store answers and only this text cannot be read, that is an attempt of
/// this task, which must not wait for ever for one damaged file.
async fn text(inner: &Inner, task: &Task) -> Result<(Text, Share)> {
    let texts = &inner.ports.texts;
    let (doc_id, revision) = (task.doc_id, task.input.revision);
    let read = async {
        let length = texts.length(doc_id, revision).await?;
        let share = inner.long_texts.share(length).await;
        let text = texts.get(doc_id, revision).await?;
        let blocks = if task.input.extracted { Some(texts.blocks(doc_id, revision).await?) } else { None };
        Ok::<_, lkr_catalog::Error>((Text { text, blocks }, share))
    };
    match read.await {
        Err(error) if error.is_retryable() && texts.health().await.is_ok() => {
            Err(Error::new(ErrorKind::Unreadable, "read text", error))
        }
        read => Ok(read?),
    }
}
