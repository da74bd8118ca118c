//! One document through its stages.

use std::time::Instant;

use lkr_catalog::{Active, DocumentResult, Progress, Stage, Task, TaskResult, TaskStatus, Usage};
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::{
    Error, ErrorKind, Result,
    draft::{Text, draft},
    ingestor::Inner,
    long_texts::Share,
    store::store,
};

/// How a task stands, for whoever writes it down.
pub(crate) type Report = watch::Sender<(Stage, Progress)>;

/// Takes the document of `task` from its text to being visible.
pub(crate) async fn ingest(inner: &Inner, active: Active, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    report.send_replace((Stage::Parse, Progress::default()));
    let (text, share) = text(inner, task).await?;
    let (mut draft, mut warnings) = draft(inner, task, text, share, report.clone()).await?;
    let shelf = inner.shelves.enter().await;
    let (embedded, warning) = store(inner, &shelf, &mut draft, report).await?;
    report.send_replace((Stage::Publish, Progress::default()));
    warnings.extend(warning);
    warnings.extend(inner.ports.embedder.is_none().then(|| NO_MODEL.to_owned()));
    let mut task = task.clone();
    task.status = TaskStatus::Done;
    task.stage = Stage::Publish;
    task.progress = Progress { done: 1, total: 1 };
    task.updated_at = OffsetDateTime::now_utc();
    task.error = None;
    task.result = Some(TaskResult::Document(DocumentResult {
        title: draft.document.title.clone(),
        category: draft.document.category.clone(),
        language: draft.document.language.clone(),
        counts: draft.document.counts,
        embedded,
        usage: Usage::default(),
        warnings,
        elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    }));
    let has_dense = shelf.shows_vectors(&inner.ports).await?;
    inner.ports.catalog.publish(active, &draft.document, &task, has_dense).await?;
    Ok(())
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
