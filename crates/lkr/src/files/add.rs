use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use lkr_domain::{Document, Metadata, stem_and_suffix};
use lkr_ingest::{NewFile, Submission};

use super::{Extracted, FileError, FilePlugins, FileReader, FileSource, refusal};
use crate::{Error, ErrorKind, ExtractedText, KnowledgeBase, Result, blocking::blocking};

impl KnowledgeBase {
    /// Extracts the text of a file with the default plugins, adds the document and waits until it is searchable. Its
    /// title is the file name without the extension. Dropping the future is as for [`add`](Self::add).
    ///
    /// # Errors
    /// `Invalid` if the file cannot be read, is no file, or contains no text; those of [`add`](Self::add).
    pub async fn add_file(&self, reader: &FileReader, path: impl AsRef<Path>) -> Result<Document> {
        let path = path.as_ref();
        let error = |kind, reason: &dyn std::fmt::Display| {
            Error::new(kind, "add file", format!("{}: {reason}", path.display()))
        };
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (file, size_bytes) = open(path.to_path_buf()).await?;
        let reopened = file.try_clone().map_err(|source| error(ErrorKind::Internal, &source))?;
        let source =
            FileSource { file_name: file_name.clone(), media_type: None, file: reopened, length: size_bytes };
        let extracted = reader.read(source, &FilePlugins::default()).await;
        let extracted = extracted.map_err(|source| match refusal(&source) {
            Some(kind) => {
                let reason = format!("{}: {}", path.display(), source.reason());
                Error::new(ErrorKind::Invalid, "add file", FileError { kind, reason })
            }
            None => error(source.kind(), &source.reason()),
        })?;
        if extracted.is_blank() {
            return Err(error(ErrorKind::Invalid, &"the file contains no text"));
        }
        let warnings = extracted.warnings().to_vec();
        let title = stem_and_suffix(&file_name).0.to_owned();
        let (source, metadata) = (format!("file:{file_name}"), Metadata::new());
        let extracted = extracted_text(extracted);
        let file = NewFile { file_name, file, size_bytes, extracted, title, source, metadata };
        let task = self.submit_file(file, Submission { warnings, ..Submission::default() }).await?;
        self.wait_for_document(task).await
    }
}

/// Opens a file, and tells its length. Opening waits for a disk, so it is done on the blocking pool.
async fn open(path: PathBuf) -> Result<(File, u64)> {
    blocking("add file", move || {
        let opened = open_regular(&path);
        opened.map_err(|error| {
            Error::new(ErrorKind::Invalid, "add file", format!("{}: {error}", path.display()))
        })
    })
    .await
}

/// Opens what is a file. Opening a named pipe would wait for a writer.
fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// Converts the result of an extraction for a [`NewFile`].
#[must_use]
pub fn extracted_text(extracted: Extracted) -> ExtractedText {
    let (text_bytes, blocks_bytes) = (extracted.text_bytes(), extracted.blocks_bytes());
    ExtractedText { file: extracted.into_file(), text_bytes, blocks_bytes }
}
