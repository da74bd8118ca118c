use std::fs::File;

use lkr_catalog::ExtractedText;
use lkr_domain::Metadata;

/// A file to ingest, with its text already extracted.
#[derive(Debug)]
pub struct NewFile {
    /// Its name as it was sent.
    pub file_name: String,
    /// Its bytes, which are stored unchanged.
    pub file: File,
    /// The number of bytes.
    pub size_bytes: u64,
    /// Its text, with at least one character other than white space, and the text's blocks as encoded by
    /// [`lkr_parsers::encode_blocks`]. At most [`lkr_parsers::MAX_TEXT_BYTES`].
    pub extracted: ExtractedText,
    /// The title: at most [`lkr_domain::MAX_LINE_CHARS`] code points.
    pub title: String,
    /// Where the document comes from, in the caller's own terms: at most [`lkr_domain::MAX_LINE_CHARS`] code points.
    pub source: String,
    /// Free metadata: at most [`lkr_domain::MAX_METADATA_KEYS`] keys.
    pub metadata: Metadata,
}
