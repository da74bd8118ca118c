use std::fs::File;

use lkr_catalog::ExtractedText;
use lkr_domain::Metadata;

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
