//! Repairs.

use std::{fs, io, io::Write, path::Path};

use futures_util::{Stream, TryStreamExt};
use lkr_catalog::{ErrorKind, ExtractedText, Result, ScannedRecord, Task, Texts, tags_of};
use lkr_domain::{DocId, Document, Fingerprint, Layer, NewDocument, SpaceName};
use lkr_ingest::{NewFile, Submission};
use lkr_vectors::{Collection, Condition, Filter};

use crate::{
    finding::RepairOutcome,
    ports::{Ports, Repairer},
    restore::{LostDocument, end_restoration},
    spaces::create_closed_space,
};

/// What `lkr doctor --repair` does about a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum RepairAction {
    /// Does nothing, and gives this advice.
    Unrepairable(&'static str),
    /// Deletes a record that other records make superfluous.
    DeleteRecord(ScannedRecord),
    /// Moves a record aside.
    MoveRecordAside(ScannedRecord),
    /// Adds the document to the text indexes.
    AddToTextIndexes(Box<Document>),
    /// Adds the task to the lists of its space and account.
    IndexTask(Box<Task>),
    /// Stores this fingerprint of the document.
    Fingerprint(Box<Document>, Fingerprint),
    /// Sets the tags of the document's points from its record.
    SetTags(Box<Document>),
    /// Ingests the document again from this text.
    Reingest(Box<Document>, String),
    /// Makes the task its document's unfinished task again.
    ResumeTask(Box<Task>),
    /// Deletes blocks, which only ingestion needs.
    DeleteBlocks(DocId, u64),
    /// Deletes points.
    DeletePoints(DocId, u64),
    /// Moves a text and its blocks aside.
    MoveTextAside(DocId, u64),
    /// Moves an original aside.
    MoveOriginalAside(String),
    /// Moves the text of a document aside whose task was lost.
    MoveInputAside(DocId, u64),
    /// Restores the record of a document.
    Restore(Box<LostDocument>),
    /// Takes over newer tags into the record of a document.
    AdoptTags(Box<LostDocument>),
    /// Creates a space for documents that are in it.
    CreateSpace(SpaceName),
    /// Ends the restoration of a store without any record.
    EndRestoration,
}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl RepairAction {
    /// A short description.
    #[must_use]
    pub const fn description(&self) -> &str {
        match self {
            Self::Unrepairable(advice) => advice,
            Self::DeleteRecord(_) => "the record is deleted",
            Self::MoveRecordAside(_) => "the record is moved aside",
            Self::AddToTextIndexes(_) => "the document is added to the text indexes",
            Self::IndexTask(_) => "the task is added to the lists",
            Self::Fingerprint(..) => "the fingerprint is computed again",
            Self::SetTags(_) => "the tags are set from the record",
            Self::Reingest(..) => "the document is ingested again from its text",
            Self::ResumeTask(_) => "the task is queued again",
            Self::DeleteBlocks(..) => "the blocks are deleted; nothing needs them any more",
            Self::DeletePoints(..) => "the points are deleted",
            Self::MoveTextAside(..) => "the text is moved aside",
            Self::MoveOriginalAside(_) => "the file is moved aside",
            Self::MoveInputAside(..) => {
                "the text is moved aside; title, source, metadata, space and creator are lost: add the document again"
            }
            Self::Restore(lost) => lost.remedy(),
            Self::AdoptTags(_) => {
                "the record takes over the title, source, category and metadata of the points"
            }
            Self::CreateSpace(_) => {
                "the space is created closed: it has no members, and only an admin can open it again"
            }
            Self::EndRestoration => {
                "documents, their spaces and counters are restored; accounts, keys, groups, members, settings, webhooks, \
                 tasks and the audit log are lost: reset the admin, then set them again"
            }
        }
    }

    /// Whether the repair removes something that may be the only copy.
    pub(crate) const fn removes(&self) -> bool {
        matches!(
            self,
            Self::DeletePoints(..)
                | Self::MoveTextAside(..)
                | Self::MoveInputAside(..)
                | Self::MoveOriginalAside(_)
        )
    }

    pub(crate) async fn apply(&self, ports: &Ports, repairer: &Repairer) -> RepairOutcome {
        match self.try_apply(ports, repairer).await {
            Ok(outcome) => outcome,
            Err(error) => RepairOutcome::Failed(error.to_string()),
        }
    }

    async fn try_apply(&self, ports: &Ports, repairer: &Repairer) -> Result<RepairOutcome, BoxError> {
        let catalog = &ports.catalog;
        match self {
            Self::Unrepairable(_) => return Ok(RepairOutcome::Unrepaired),
            Self::DeleteRecord(scanned) => match catalog.delete_if_unchanged(scanned).await {
                // Another repair has rewritten it.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                deleted => deleted?,
            },
            Self::MoveRecordAside(scanned) => {
                if let Some(record) = catalog.record(&scanned.key).await? {
                    write_aside(&repairer.aside, &format!("records/{}", scanned.key), &record.value)?;
                }
                catalog.delete_if_unchanged(scanned).await?;
            }
            Self::AddToTextIndexes(document) => catalog.index_document(document).await?,
            Self::IndexTask(task) => catalog.index_task(task).await?,
            Self::Fingerprint(document, fingerprint) => {
                if let Some(stored) = catalog.document(document.doc_id).await? {
                    catalog.fingerprint(&stored, fingerprint.clone()).await?;
                }
            }
            Self::SetTags(document) => set_tags(ports, document).await?,
            Self::Reingest(document, text) => return reingest(ports, repairer, document, text).await,
            Self::ResumeTask(task) => {
                catalog.restore_active_task(task).await?;
                return Ok(RepairOutcome::Queued);
            }
            Self::DeleteBlocks(doc_id, revision) => ports.texts.delete_blocks(*doc_id, *revision).await?,
            Self::DeletePoints(doc_id, revision) => {
                let of_revision = Filter::only(Condition::Revision(*doc_id, *revision));
                for spec in ports.vectors.collections().await? {
                    ports.vectors.delete(&spec.collection, &of_revision).await?;
                }
            }
            Self::MoveTextAside(doc_id, revision) | Self::MoveInputAside(doc_id, revision) => {
                move_text_aside(ports, repairer, *doc_id, *revision).await?;
            }
            Self::MoveOriginalAside(path) => move_original_aside(ports, repairer, path).await?,
            Self::Restore(lost) => lost.restore(ports).await?,
            Self::AdoptTags(newer) => {
                // A kill in between is repaired by the next repair: the tags stay newer than the record.
                set_tags(ports, &newer.document).await?;
                newer.restore(ports).await?;
            }
            Self::CreateSpace(name) => create_closed_space(ports, name).await?,
            Self::EndRestoration => end_restoration(ports).await?,
        }
        Ok(RepairOutcome::Repaired)
    }
}

async fn set_tags(ports: &Ports, document: &Document) -> Result<()> {
    let of_revision = Filter::only(Condition::Revision(document.doc_id, document.revision));
    for layer in Layer::ALL {
        ports.vectors.set_tags(&Collection::from(layer), &of_revision, &tags_of(document)).await?;
    }
    Ok(())
}

/// Accepts a replacement of the document with its own text, unless another replacement is unfinished.
async fn reingest(
    ports: &Ports,
    repairer: &Repairer,
    document: &Document,
    text: &str,
) -> Result<RepairOutcome, BoxError> {
    if ports.catalog.document_state(document.doc_id).await?.replacement().is_some() {
        return Ok(RepairOutcome::Queued);
    }
    let submission = Submission::by(document.created_by.clone());
    let Document { doc_id, title, source, metadata, .. } = document.clone();
    let accepted = match &document.original {
        None => {
            let document = NewDocument { text: text.to_owned(), title, source, metadata };
            repairer.ingestor.replace(doc_id, document, submission).await?
        }
        Some(original) => {
            let stored = ports.originals.get(&original.path).await?.ok_or("its original is missing")?;
            let file = spool(stored.read_verified(original.sha256.as_deref()).await?).await?;
            let blocks = ports.texts.blocks(doc_id, document.revision, None).await?;
            let mut extracted = tempfile::tempfile()?;
            extracted.write_all(text.as_bytes())?;
            extracted.write_all(&blocks)?;
            let (text_bytes, blocks_bytes) = (text.len() as u64, blocks.len() as u64);
            let extracted = ExtractedText { file: extracted, text_bytes, blocks_bytes };
            let (file_name, size_bytes) = (original.file_name.clone(), stored.size_bytes);
            let file = NewFile { file_name, file, size_bytes, extracted, title, source, metadata };
            repairer.ingestor.replace_file(doc_id, file, submission).await?
        }
    };
    Ok(if accepted.is_some() {
        RepairOutcome::Queued
    } else {
        RepairOutcome::Failed("the document was deleted".to_owned())
    })
}

/// Writes a stream to an unnamed temporary file.
async fn spool(parts: impl Stream<Item = io::Result<bytes::Bytes>>) -> io::Result<fs::File> {
    let mut file = tempfile::tempfile()?;
    let mut writer = &file;
    parts.try_for_each(|part| std::future::ready(writer.write_all(&part))).await?;
    file.flush()?;
    Ok(file)
}

async fn move_text_aside(
    ports: &Ports,
    repairer: &Repairer,
    doc_id: DocId,
    revision: u64,
) -> Result<(), BoxError> {
    for path in Texts::paths(doc_id, revision) {
        if let Some((_, parts)) = ports.texts.blob(&path).await? {
            stream_aside(&repairer.aside.join("blobs").join(path), parts).await?;
        }
    }
    Ok(ports.texts.delete(doc_id, revision).await?)
}

async fn move_original_aside(ports: &Ports, repairer: &Repairer, path: &str) -> Result<(), BoxError> {
    if let Some(stored) = ports.originals.get(path).await? {
        stream_aside(&repairer.aside.join("uploads").join(path), stored.read_verified(None).await?).await?;
    }
    Ok(ports.originals.delete(path).await?)
}

/// Writes a stream to a file below the folder for data that is moved aside.
async fn stream_aside(to: &Path, parts: impl Stream<Item = io::Result<bytes::Bytes>>) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let file = fs::File::create(to)?;
    let mut writer = &file;
    parts.try_for_each(|part| std::future::ready(writer.write_all(&part))).await?;
    file.sync_all()
}

/// Writes bytes to a file below the folder for data that is moved aside.
fn write_aside(aside: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = aside.join(name);
    fs::create_dir_all(path.parent().unwrap_or(aside))?;
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
