use lkr::{ContextPassage, ContextResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::formats::Id;

/// Passages for a question, as one text for a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextAnswer {
    /// The question, without surrounding white space.
    query: String,
    /// For each document its title, and for each passage its marker, its heading path and its text; empty if no passage
    /// fits.
    text: String,
    /// An estimate of the tokens of `text` in the vocabulary o200k_base, at most `max_tokens`.
    tokens: usize,
    /// The passages in the order of `text`: documents by their best passage, those of a document in its order.
    passages: Vec<ContextPassageItem>,
    /// What the response lacks, and why; empty if nothing.
    warnings: Vec<String>,
    /// How long it took, in milliseconds.
    took_ms: u64,
}

/// A contiguous part of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextPassageItem {
    /// How the text refers to it: [1], [2], …
    marker: String,
    /// The chunks that contain it, in order.
    #[schema(value_type = Vec<Id>)]
    chunk_ids: Vec<String>,
    /// The document.
    #[schema(value_type = Id)]
    doc_id: String,
    /// The title of the document.
    title: String,
    /// Where the document comes from.
    source: String,
    /// The headings above its beginning, outermost first.
    path: Vec<String>,
    /// The first page, from 1; null if the document has no pages.
    #[schema(required)]
    page_start: Option<u32>,
    /// The last page; null if the document has no pages.
    #[schema(required)]
    page_end: Option<u32>,
    /// The position of the first code point in the document's extracted text.
    char_start: u32,
    /// The position after the last code point.
    char_end: u32,
    /// The extracted text cut at char_start and char_end.
    text: String,
    /// The score of the chunk for whose sake it was chosen, as in a search.
    score: f32,
}

impl From<ContextResponse> for ContextAnswer {
    fn from(response: ContextResponse) -> Self {
        let ContextResponse { query, text, tokens, passages, warnings, took_ms, profile: _ } = response;
        let passages = passages.into_iter().map(ContextPassageItem::from).collect();
        Self { query, text, tokens, passages, warnings, took_ms }
    }
}

impl From<ContextPassage> for ContextPassageItem {
    fn from(passage: ContextPassage) -> Self {
        Self {
            marker: passage.marker,
            chunk_ids: passage.chunk_ids.iter().map(ToString::to_string).collect(),
            doc_id: passage.doc_id.to_string(),
            title: passage.title,
            source: passage.source,
            path: passage.path,
            page_start: passage.page_start,
            page_end: passage.page_end,
            char_start: passage.char_start,
            char_end: passage.char_end,
            text: passage.text,
            score: passage.score,
        }
    }
}
