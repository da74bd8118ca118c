//! A document that passed the limits and is ready to be accepted.

use std::fs::File;

use bytes::Bytes;
use lkr_catalog::{ExtractedText, LimitExceeded, check_line, check_properties, check_text, check_text_bytes};
use lkr_domain::{DocId, MAX_NEW_TEXT_BYTES, Metadata, NewDocument, RESERVED_METADATA};
use lkr_parsers::MAX_TEXT_BYTES;

use crate::{Error, ErrorKind, NewFile, Result};

/// A document to accept. Making one checks every limit, so that nothing is stored that the limits forbid.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) title: String,
    pub(crate) source: String,
    /// Without reserved keys.
    pub(crate) metadata: Metadata,
    /// About the reserved keys that were dropped.
    pub(crate) warnings: Vec<String>,
    pub(crate) content: Content,
    /// The document that it replaces.
    pub(crate) replaces: Option<DocId>,
}

#[derive(Debug)]
pub(crate) enum Content {
    Text(Bytes),
    File { file_name: String, file: File, size_bytes: u64, extracted: ExtractedText },
}

impl Item {
    /// # Errors
    /// `Invalid` for a blank text, and for a text, title, source or metadata beyond its limit.
    pub(crate) fn text(document: NewDocument, replaces: Option<DocId>) -> Result<Self> {
        let NewDocument { text, title, source, metadata } = document;
        check_text(&text, MAX_NEW_TEXT_BYTES).map_err(invalid)?;
        Self::new(title, source, metadata, Content::Text(text.into()), replaces)
    }

    /// # Errors
    /// `Invalid` for a text, title, source or metadata beyond its limit.
    pub(crate) fn file(file: NewFile, replaces: Option<DocId>) -> Result<Self> {
        let NewFile { file_name, file, size_bytes, extracted, title, source, metadata } = file;
        check_text_bytes(extracted.text_bytes, MAX_TEXT_BYTES).map_err(invalid)?;
        let content = Content::File { file_name, file, size_bytes, extracted };
        Self::new(title, source, metadata, content, replaces)
    }

    fn new(
        title: String,
        source: String,
        mut metadata: Metadata,
        content: Content,
        replaces: Option<DocId>,
    ) -> Result<Self> {
        check_line("title", &title).map_err(invalid)?;
        check_line("source", &source).map_err(invalid)?;
        let mut warnings = Vec::new();
        drop_reserved(&mut metadata, &mut warnings);
        check_properties(&title, &source, &metadata).map_err(invalid)?;
        Ok(Self { title, source, metadata, warnings, content, replaces })
    }
}

fn invalid(exceeded: LimitExceeded) -> Error {
    Error::new(ErrorKind::Invalid, "submit document", exceeded)
}

/// Removes the metadata keys that only lkr itself sets, with a warning for each.
pub fn drop_reserved(metadata: &mut Metadata, warnings: &mut Vec<String>) {
    for key in RESERVED_METADATA {
        if metadata.remove(key).is_some() {
            warnings.push(format!("metadata key {key} is reserved and was dropped"));
        }
    }
}
