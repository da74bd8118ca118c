//! Documents that come as files.

use std::fs::File;

use lkr_catalog::{ExtractedText, Task, TaskInput, original_path};
use lkr_domain::{Creator, DocId, Metadata, Original};
use time::OffsetDateTime;

use crate::{
    Result,
    ingestor::{Inner, drop_reserved},
};

/// A file to be ingested, whose text was extracted already.
#[derive(Debug)]
pub struct NewFile {
    /// Its name as it was sent.
    pub file_name: String,
    /// Its bytes, to be stored as they are.
    pub file: File,
    /// How many they are.
    pub size_bytes: u64,
    /// Its text, at least one character of which is not white space, and the blocks of the text as
    /// [`lkr_parsers::encode_blocks`] writes them down.
    pub extracted: ExtractedText,
    /// The title.
    pub title: String,
    /// Where the document comes from, in the caller's own terms.
    pub source: String,
    /// Free metadata.
    pub metadata: Metadata,
}

/// Stores the file and its text, and accepts the document.
pub(crate) async fn accept(
    inner: &Inner,
    file: NewFile,
    created_by: Creator,
    mut warnings: Vec<String>,
) -> Result<Task> {
    let doc_id = DocId::new();
    let NewFile { file_name, file, size_bytes, extracted, title, source, mut metadata } = file;
    drop_reserved(&mut metadata, &mut warnings);
    let original = store(inner, doc_id, file_name, &file, size_bytes).await;
    let path = original.as_ref().map(|original| original.path.clone());
    let revision = 1;
    let input = TaskInput { revision, title, source, metadata, warnings, original, extracted: true };
    let task = Task::ingest(doc_id, created_by, input);
    let task_id = task.task_id;
    let accepted = async {
        inner.ports.texts.put_extracted(doc_id, revision, extracted).await?;
        inner.enqueue_or_forget(task).await
    };
    let accepted = accepted.await;
    if accepted.is_err()
        && let Some(path) = path
        && let Ok(None) = inner.ports.catalog.task(task_id).await
    {
        discard(inner, doc_id, &path).await;
        let _ = inner.ports.texts.delete(doc_id, revision).await;
    }
    accepted
}

/// Stores the file itself; `None` where that fails, which is logged.
async fn store(
    inner: &Inner,
    doc_id: DocId,
    file_name: String,
    file: &File,
    size_bytes: u64,
) -> Option<Original> {
    let path = original_path(doc_id, &file_name, OffsetDateTime::now_utc());
    let stored = async {
        inner.ports.catalog.note_upload(doc_id, &path).await?;
        inner.ports.originals.put(&path, file, size_bytes).await
    };
    match stored.await {
        Ok(()) => Some(Original { path, file_name, size_bytes }),
        Err(error) => {
            tracing::warn!(%doc_id, %error, "an original could not be stored; its text is ingested without it");
            discard(inner, doc_id, &path).await;
            None
        }
    }
}

/// Removes what no task answers for. Where that fails, the next start does it.
async fn discard(inner: &Inner, doc_id: DocId, path: &str) {
    if inner.ports.originals.delete(path).await.is_ok() {
        let _ = inner.ports.catalog.forget_upload(doc_id).await;
    }
}
