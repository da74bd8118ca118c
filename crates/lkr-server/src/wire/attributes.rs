//! What clients of other protocols get to know of a document and a chunk besides the text: a flat object. Metadata keep
//! their keys, and other fields have names by which filters find them.

use lkr::{Document, SearchResult};
use serde_json::{Map, Value};

use super::{filter_expr::attribute_name, timestamp::timestamp};

/// The attributes of a document.
pub(crate) fn document_attributes(document: &Document) -> Map<String, Value> {
    let mut attributes: Map<String, Value> =
        document.all_metadata().into_iter().map(|(key, value)| (key, Value::String(value))).collect();
    let times = [("created_at", document.created_at), ("updated_at", document.updated_at)];
    let texts = [
        ("title", &document.title),
        ("source", &document.source),
        ("category", &document.category),
        ("language", &document.language),
    ];
    let texts =
        texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.clone()));
    let times = times.into_iter().map(|(name, at)| (name, timestamp(at)));
    let id = [("doc_id", document.doc_id.to_string())];
    let fields = id.into_iter().chain(texts).chain(times);
    attributes.extend(fields.map(|(name, text)| (attribute_name(name), Value::String(text))));
    attributes
}

/// The attributes of a chunk: those of its document, and its place in it.
pub(crate) fn chunk_attributes(document: &Document, chunk: &SearchResult) -> Map<String, Value> {
    let mut attributes = document_attributes(document);
    let mut add = |name: &str, value: Value| drop(attributes.insert(attribute_name(name), value));
    add("chunk_id", Value::String(chunk.chunk_id.to_string()));
    add("char_start", Value::from(chunk.char_start));
    add("char_end", Value::from(chunk.char_end));
    if !chunk.path.is_empty() {
        add("path", Value::String(chunk.path.join(" > ")));
    }
    let pages = [("page_start", chunk.page_start), ("page_end", chunk.page_end)];
    pages
        .into_iter()
        .filter_map(|(name, page)| Some((name, page?)))
        .for_each(|(name, page)| add(name, page.into()));
    attributes
}
