//! Storing a submitted document's text and file before its task is accepted.

use std::{
    fs::File,
    time::{Duration, Instant},
};

use lkr_catalog::{ContentDigests, DocumentState, Task, TaskInput, original_path, replaced_path};
use lkr_domain::{DocId, Original};
use time::OffsetDateTime;

use crate::{
    Ports, Result, Submission,
    item::{Content, Item},
    janitor::{ACCEPTANCE, is_original_in_use},
};

/// How long a refused submission waits for its stored content to be deleted. The next start deletes the rest.
const DISCARD: Duration = Duration::from_secs(2);

/// A submitted document and what is stored of it so far.
pub(crate) struct StagedDocument {
    pub(crate) item: Item,
    pub(crate) submission: Submission,
    stored: Option<StoredContent>,
}

/// Where the content of a staged document was stored.
struct StoredContent {
    doc_id: DocId,
    revision: u64,
    original: Option<Original>,
    /// Set once everything is stored.
    digests: Option<ContentDigests>,
    begun: Instant,
}

impl StagedDocument {
    pub(crate) fn new(item: Item, submission: Submission) -> Self {
        Self { item, submission, stored: None }
    }

    /// The revision under which it is stored.
    pub(crate) fn revision(&self) -> u64 {
        self.stored.as_ref().map_or(1, |stored| stored.revision)
    }

    /// The input of its task.
    pub(crate) fn task_input(&self, revision: u64) -> TaskInput {
        let Item { title, source, metadata, content, warnings, .. } = &self.item;
        let digests = self.stored.as_ref().and_then(|stored| stored.digests.as_ref());
        TaskInput {
            revision,
            title: title.clone(),
            source: source.clone(),
            metadata: metadata.clone(),
            warnings: self.submission.warnings.iter().chain(warnings).cloned().collect(),
            original: self.stored.as_ref().and_then(|stored| stored.original.clone()),
            extracted: matches!(content, Content::File { .. }),
            text_sha256: digests.map(|digests| digests.text.clone()),
            blocks_sha256: digests.and_then(|digests| digests.blocks.clone()),
            dedup: self.submission.dedup,
            model: None,
            origin: self.submission.origin.clone(),
        }
    }

    /// Stores the content under a document, unless an earlier attempt stored it there.
    pub(crate) async fn store(
        &mut self,
        ports: &Ports,
        doc_id: DocId,
        replaced: Option<&DocumentState>,
    ) -> Result<()> {
        if let Some(stored) = &self.stored {
            let revision = stored.revision;
            let latest = replaced.map_or(0, |state| state.next_revision(OffsetDateTime::UNIX_EPOCH));
            // What is not accepted for long is removed, see `janitor`.
            let is_fresh = stored.begun.elapsed() < ACCEPTANCE / 2;
            if stored.doc_id == doc_id && latest <= revision && is_fresh {
                return Ok(());
            }
            self.discard_unless_accepted(ports, &[]).await;
        }
        let now = ports.catalog.now();
        let revision = replaced.map_or(1, |state| state.next_revision(now));
        let begun = Instant::now();
        self.stored = Some(StoredContent { doc_id, revision, original: None, digests: None, begun });
        let (original, digests) = match &self.item.content {
            Content::Text(text) => (None, ports.texts.put(doc_id, revision, text.clone()).await?),
            Content::File { file_name, file, size_bytes, extracted } => {
                let path = match replaced {
                    None => original_path(doc_id, file_name, now),
                    Some(_) => replaced_path(doc_id, file_name, now),
                };
                let (file_name, size_bytes) = (file_name.clone(), *size_bytes);
                let original = Original { path, file_name, size_bytes, sha256: None };
                let original = put_original(ports, doc_id, file, original).await;
                if let Some(stored) = &mut self.stored {
                    stored.original.clone_from(&original);
                }
                (original, ports.texts.put_extracted(doc_id, revision, extracted).await?)
            }
        };
        self.stored = Some(StoredContent { doc_id, revision, original, digests: Some(digests), begun });
        Ok(())
    }

    /// Deletes the stored content unless one of the accepted tasks refers to it. What remains after a failure or after
    /// [`DISCARD`] is collected at the next start.
    pub(crate) async fn discard_unless_accepted(&self, ports: &Ports, accepted: &[Task]) {
        let Some(StoredContent { doc_id, revision, original, .. }) = &self.stored else { return };
        let refers = |task: &Task| task.subject.doc_id() == Some(*doc_id) && task.input.revision == *revision;
        if accepted.iter().any(refers) {
            return;
        }
        // A failed accepting step may have been written nevertheless.
        if !matches!(ports.catalog.is_referenced(*doc_id, *revision).await, Ok(false)) {
            return;
        }
        let discard = async {
            let _ = ports.texts.delete(*doc_id, *revision).await;
            // If the step was written, the document may have been published and moved since.
            if let Some(original) = original
                && matches!(is_original_in_use(ports, *doc_id, &original.path).await, Ok(false))
            {
                delete_original(ports, *doc_id, &original.path).await;
            }
        };
        let _ = tokio::time::timeout(DISCARD, discard).await;
    }
}

/// Stores an uploaded file; `None` if that fails, which is logged.
async fn put_original(ports: &Ports, doc_id: DocId, file: &File, original: Original) -> Option<Original> {
    let stored = async {
        ports.catalog.note_upload(doc_id, &original.path).await?;
        ports.originals.put(&original.path, file, original.size_bytes).await
    };
    match stored.await {
        Ok(sha256) => Some(Original { sha256: Some(sha256), ..original }),
        Err(error) => {
            tracing::warn!(%doc_id, %error, "cannot store an original; its text is ingested without it");
            let _ = tokio::time::timeout(DISCARD, delete_original(ports, doc_id, &original.path)).await;
            None
        }
    }
}

/// Deletes an original that no task refers to. After a failure the next start does it.
async fn delete_original(ports: &Ports, doc_id: DocId, path: &str) {
    if ports.originals.delete(path).await.is_ok() {
        let _ = ports.catalog.forget_upload_at(doc_id, path).await;
    }
}
