//! What can be done about what is wrong.

use std::{fs, io, io::Write, path::Path};

use futures_util::{Stream, TryStreamExt};
use lkr_catalog::{ErrorKind, ExtractedText, Result, ScannedRecord, Task, Texts, tags_of};
use lkr_domain::{DocId, Document, Fingerprint, NewDocument};
use lkr_ingest::{NewFile, Submission};
use lkr_vectors::{Collection, Condition, Filter};

use crate::{Ports, RepairOutcome, Repairer, layers};

/// What can be done about something that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum RepairAction {
    /// Nothing, for the reason that is given.
    Lost(&'static str),
    /// The record is removed: others know what it should say.
    Strike(ScannedRecord),
    /// The record is moved aside.
    SetAside(ScannedRecord),
    /// The document is put into the indexes of texts.
    Index(Box<Document>),
    /// The document gets this fingerprint.
    Fingerprint(Box<Document>, Fingerprint),
    /// The document's points get the tags that its record tells.
    Retag(Box<Document>),
    /// The document is ingested again from this text.
    Replace(Box<Document>, String),
    /// The task is recorded as unfinished.
    Resume(Box<Task>),
    /// The blocks go, which are of use to ingestion alone.
    DropBlocks(DocId, u64),
    /// Points go.
    DropPoints(DocId, u64),
    /// A text and its blocks are moved aside.
    DropText(DocId, u64),
    /// A file is moved aside.
    DropOriginal(String),
}

/// What kept a cure from being applied.
type Applied = std::result::Result<RepairOutcome, Box<dyn std::error::Error + Send + Sync>>;

impl RepairAction {
    /// What it does, in few words.
    #[must_use]
    pub const fn described(&self) -> &str {
        match self {
            Self::Lost(reason) => reason,
            Self::Strike(_) => "it is removed",
            Self::SetAside(_) => "it is moved aside",
            Self::Index(_) => "it is put into them",
            Self::Fingerprint(..) => "it is made anew",
            Self::Retag(_) => "they are set",
            Self::Replace(..) => "the document is ingested again from its text",
            Self::Resume(_) => "it is taken up again",
            Self::DropBlocks(..) => "they are removed; nothing needs them any more",
            Self::DropPoints(..) => "they are removed",
            Self::DropText(..) | Self::DropOriginal(_) => "it is moved aside",
        }
    }

    pub(crate) async fn apply(&self, ports: &Ports, mender: &Repairer) -> RepairOutcome {
        match self.try_apply(ports, mender).await {
            Ok(outcome) => outcome,
            Err(error) => RepairOutcome::Failed(error.to_string()),
        }
    }

    async fn try_apply(&self, ports: &Ports, mender: &Repairer) -> Applied {
        let catalog = &ports.catalog;
        match self {
            Self::Lost(_) => return Ok(RepairOutcome::Left),
            Self::Strike(scanned) => match catalog.delete_if_unchanged(scanned).await {
                // Another cure wrote it anew.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                struck => struck?,
            },
            Self::SetAside(scanned) => {
                if let Some(record) = catalog.record(&scanned.key).await? {
                    keep(&mender.aside, &format!("records/{}", scanned.key), &record.value)?;
                }
                catalog.delete_if_unchanged(scanned).await?;
            }
            Self::Index(document) => catalog.index_document(document).await?,
            Self::Fingerprint(document, fingerprint) => {
                if let Some(stored) = catalog.document(document.doc_id).await? {
                    catalog.fingerprint(&stored, fingerprint.clone()).await?;
                }
            }
            Self::Retag(document) => retag(ports, document).await?,
            Self::Replace(document, text) => return replace(ports, mender, document, text).await,
            Self::Resume(task) => {
                catalog.restore_active_task(task).await?;
                return Ok(RepairOutcome::Queued);
            }
            Self::DropBlocks(doc_id, revision) => ports.texts.delete_blocks(*doc_id, *revision).await?,
            Self::DropPoints(doc_id, revision) => {
                let own = Filter::only(Condition::Revision(*doc_id, *revision));
                for spec in ports.vectors.collections().await? {
                    ports.vectors.delete(&spec.collection, &own).await?;
                }
            }
            Self::DropText(doc_id, revision) => drop_text(ports, mender, *doc_id, *revision).await?,
            Self::DropOriginal(path) => drop_original(ports, mender, path).await?,
        }
        Ok(RepairOutcome::Mended)
    }
}

async fn retag(ports: &Ports, document: &Document) -> Result<()> {
    let own = Filter::only(Condition::Revision(document.doc_id, document.revision));
    for layer in layers() {
        ports.vectors.set_tags(&Collection::from(layer), &own, &tags_of(document)).await?;
    }
    Ok(())
}

/// Accepts a replacement of the document by itself, unless another one is on its way.
async fn replace(ports: &Ports, mender: &Repairer, document: &Document, text: &str) -> Applied {
    if ports.catalog.document_state(document.doc_id).await?.replacement().is_some() {
        return Ok(RepairOutcome::Queued);
    }
    let submission = Submission::by(document.created_by.clone());
    let Document { doc_id, title, source, metadata, .. } = document.clone();
    let accepted = match &document.original {
        None => {
            let document = NewDocument { text: text.to_owned(), title, source, metadata };
            mender.ingestor.replace(doc_id, document, submission).await?
        }
        Some(original) => {
            let stored = ports.originals.get(&original.path).await?.ok_or("its file is missing")?;
            let file = spooled(stored.read_verified(original.sha256.as_deref()).await?).await?;
            let blocks = ports.texts.blocks(doc_id, document.revision, None).await?;
            let mut extracted = tempfile::tempfile()?;
            extracted.write_all(text.as_bytes())?;
            extracted.write_all(&blocks)?;
            let (text_bytes, blocks_bytes) = (text.len() as u64, blocks.len() as u64);
            let extracted = ExtractedText { file: extracted, text_bytes, blocks_bytes };
            let (file_name, size_bytes) = (original.file_name.clone(), stored.size_bytes);
            let file = NewFile { file_name, file, size_bytes, extracted, title, source, metadata };
            mender.ingestor.replace_file(doc_id, file, submission).await?
        }
    };
    Ok(if accepted.is_some() {
        RepairOutcome::Queued
    } else {
        RepairOutcome::Failed("it is gone".to_owned())
    })
}

/// A file without a name that holds the parts.
async fn spooled(parts: impl Stream<Item = io::Result<bytes::Bytes>>) -> io::Result<fs::File> {
    let mut file = tempfile::tempfile()?;
    let mut writer = &file;
    parts.try_for_each(|part| std::future::ready(writer.write_all(&part))).await?;
    file.flush()?;
    Ok(file)
}

async fn drop_text(
    ports: &Ports,
    mender: &Repairer,
    doc_id: DocId,
    revision: u64,
) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for path in Texts::paths(doc_id, revision) {
        if let Some((_, parts)) = ports.texts.blob(&path).await? {
            keep_parts(&mender.aside.join("blobs").join(path), parts).await?;
        }
    }
    Ok(ports.texts.delete(doc_id, revision).await?)
}

async fn drop_original(
    ports: &Ports,
    mender: &Repairer,
    path: &str,
) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if let Some(stored) = ports.originals.get(path).await? {
        keep_parts(&mender.aside.join("uploads").join(path), stored.read_verified(None).await?).await?;
    }
    Ok(ports.originals.delete(path).await?)
}

/// Writes a file of the folder of what is moved aside, as it is read.
async fn keep_parts(to: &Path, parts: impl Stream<Item = io::Result<bytes::Bytes>>) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let file = fs::File::create(to)?;
    let mut writer = &file;
    parts.try_for_each(|part| std::future::ready(writer.write_all(&part))).await?;
    file.sync_all()
}

/// Writes a file below the folder of what is moved aside.
fn keep(aside: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = aside.join(name);
    fs::create_dir_all(path.parent().unwrap_or(aside))?;
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
