use lkr_domain::{DocId, PointId};

use crate::SearchProfile;

/// Passages of documents as one text for a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextResponse {
    /// The query, without surrounding white space.
    pub query: String,
    /// For each document its title, and for each passage its marker, its heading path and its text; empty if no passage
    /// fits.
    pub text: String,
    /// An estimate of the tokens of `text` ([`lkr_text::prompt_tokens`]), at most `max_tokens`.
    pub tokens: usize,
    /// The passages in the order of `text`.
    pub passages: Vec<ContextPassage>,
    /// Warnings, such as a model that failed.
    pub warnings: Vec<String>,
    /// The duration in milliseconds.
    pub took_ms: u64,
    /// Where the time went.
    pub profile: SearchProfile,
}

/// A contiguous part of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPassage {
    /// How `text` of the response refers to it: `[1]`, `[2]`, …
    pub marker: String,
    /// The chunks that contain it, in order.
    pub chunk_ids: Vec<PointId>,
    /// Its document.
    pub doc_id: DocId,
    /// The document's title.
    pub title: String,
    /// The document's source.
    pub source: String,
    /// The headings above its beginning, without the title, outermost first.
    pub path: Vec<String>,
    /// The page it begins on, counted from 1, if the source has pages.
    pub page_start: Option<u32>,
    /// The page it ends on.
    pub page_end: Option<u32>,
    /// The offset of its first code point in the document's extracted text.
    pub char_start: u32,
    /// The offset after its last code point.
    pub char_end: u32,
    /// The extracted text between these offsets.
    pub text: String,
    /// The score of the best chunk for whose sake it was chosen, as a search shows it.
    pub score: f32,
}
