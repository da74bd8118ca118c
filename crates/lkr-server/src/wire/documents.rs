use std::collections::BTreeMap;

use lkr::{Chunk, Counts, DocId, Document, DocumentWithNodes, Node, NodeRecord, Original, content_type};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    formats::{Id, SpaceText},
    timestamp::timestamp,
};

/// The L1 record of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct L1Item {
    /// Its id.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// Its title.
    title: String,
    /// Where it comes from; may be empty.
    source: String,
    /// The space that contains the document.
    #[schema(value_type = SpaceText)]
    space: String,
    /// A summary of its text.
    summary: String,
    /// The most significant first.
    keywords: Vec<String>,
    /// Empty if there is none.
    category: String,
    /// ISO 639-1 code; empty if unknown.
    #[schema(pattern = "^([a-z]{2})?$")]
    language: String,
    /// Its metadata. An uploaded document has raw_file_path, original_filename and original_size_bytes.
    metadata: BTreeMap<String, String>,
    /// The number of chunks.
    chunk_count: u64,
    /// The length of the extracted text in code points.
    char_count: u32,
    /// The SHA-256 of the extracted text as UTF-8.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    content_sha256: String,
    /// When it was ingested first.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was ingested, replaced or changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Who added it.
    created_by: String,
}

impl From<Document> for L1Item {
    fn from(document: Document) -> Self {
        let metadata = document.all_metadata();
        Self {
            doc_id: document.doc_id,
            title: document.title,
            source: document.source,
            space: document.space.into(),
            summary: document.summary,
            keywords: document.keywords,
            category: document.category,
            language: document.language,
            metadata,
            chunk_count: document.counts.chunks,
            char_count: document.char_count,
            content_sha256: document.content_sha256,
            created_at: timestamp(document.created_at),
            updated_at: timestamp(document.updated_at),
            created_by: document.created_by.name,
        }
    }
}

/// A page of documents, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentList {
    /// The documents of the page.
    items: Vec<L1Item>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    next_offset: Option<String>,
}

impl DocumentList {
    pub(crate) fn new(items: Vec<Document>, next_offset: Option<String>) -> Self {
        Self { items: items.into_iter().map(L1Item::from).collect(), next_offset }
    }
}

/// A section (L2) or a subsection or passage (L3).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeItem {
    /// The id of the node.
    #[schema(value_type = Id)]
    node_id: String,
    /// The document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// The L2 node that contains an L3 node; null for an L2 node.
    #[schema(required, value_type = Option<Id>)]
    parent_id: Option<String>,
    /// l2 or l3
    #[schema(pattern = "^l[23]$")]
    layer: &'static str,
    /// The position within the layer of the document, from 0.
    ordinal: u32,
    /// Its heading, or its first words.
    title: String,
    /// A summary of its text.
    summary: String,
    /// The headings above the node, below the document's title.
    path: Vec<String>,
    /// The position of the first code point in the extracted text.
    char_start: u32,
    /// The position after the last code point.
    char_end: u32,
    /// The first page, from 1; null if the document has no pages.
    #[schema(required)]
    page_start: Option<u32>,
    /// The last page; null if the document has no pages.
    #[schema(required)]
    page_end: Option<u32>,
}

impl NodeItem {
    fn new(doc_id: DocId, layer: &'static str, record: NodeRecord<Node>) -> Self {
        let NodeRecord { id, parent_id, value: node } = record;
        Self {
            node_id: id.to_string(),
            doc_id,
            parent_id: parent_id.map(|id| id.to_string()),
            layer,
            ordinal: node.ordinal,
            title: node.title,
            summary: node.summary,
            path: node.path,
            char_start: node.span.start,
            char_end: node.span.end,
            page_start: node.pages.map(|pages| pages.start),
            page_end: node.pages.map(|pages| pages.end),
        }
    }
}

/// A document with its nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentDetail {
    /// The document.
    l1: L1Item,
    /// Its sections, in order.
    l2: Vec<NodeItem>,
    /// Its subsections and passages, in order.
    l3: Vec<NodeItem>,
    /// The number of chunks.
    chunk_count: u64,
    /// The stored original; null if there is none.
    #[schema(required)]
    file: Option<FileInfo>,
    /// The last page with text; null if the document has no pages.
    #[schema(required)]
    pages: Option<u32>,
    /// Whether the pages can be shown as images.
    page_images: bool,
}

/// A stored original.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileInfo {
    /// The name under which it was uploaded.
    original_filename: String,
    /// Its size in bytes.
    size_bytes: u64,
    /// The content type, by the extension of the name.
    content_type: String,
    /// Whether the file can be read now.
    available: bool,
}

impl DocumentDetail {
    /// A document with its nodes. `available` is whether its original can be read, and `page_images` whether its pages can
    /// be shown.
    pub(crate) fn new(detail: DocumentWithNodes, available: bool, page_images: bool) -> Self {
        let DocumentWithNodes { document, l2, l3 } = detail;
        let doc_id = document.doc_id;
        let last_page = |node: &NodeRecord<Node>| node.value.pages.map(|pages| pages.end);
        Self {
            pages: l2.iter().chain(&l3).filter_map(last_page).max(),
            page_images,
            l2: l2.into_iter().map(|node| NodeItem::new(doc_id, "l2", node)).collect(),
            l3: l3.into_iter().map(|node| NodeItem::new(doc_id, "l3", node)).collect(),
            chunk_count: document.counts.chunks,
            file: document.original.as_ref().map(|original| FileInfo::new(original, available)),
            l1: L1Item::from(document),
        }
    }
}

impl FileInfo {
    fn new(original: &Original, available: bool) -> Self {
        Self {
            original_filename: original.file_name.clone(),
            size_bytes: original.size_bytes,
            content_type: content_type(&original.file_name).to_owned(),
            available,
        }
    }
}

/// A passage of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkItem {
    /// The id of the chunk.
    #[schema(value_type = Id)]
    chunk_id: String,
    /// The L3 node that contains the chunk.
    #[schema(required, value_type = Option<Id>)]
    parent_id: Option<String>,
    /// The position within the document, from 0.
    ordinal: u32,
    /// The extracted text cut at char_start and char_end.
    text: String,
    /// The headings above the chunk, outermost first.
    path: Vec<String>,
    /// The position of the first code point in the document's extracted text.
    char_start: u32,
    /// The position after the last code point.
    char_end: u32,
    /// The first page, from 1; null if the document has no pages.
    #[schema(required)]
    page_start: Option<u32>,
    /// The last page; null if the document has no pages.
    #[schema(required)]
    page_end: Option<u32>,
}

impl From<NodeRecord<Chunk>> for ChunkItem {
    fn from(NodeRecord { id, parent_id, value: chunk }: NodeRecord<Chunk>) -> Self {
        Self {
            chunk_id: id.to_string(),
            parent_id: parent_id.map(|id| id.to_string()),
            ordinal: chunk.ordinal,
            text: chunk.text,
            path: chunk.path,
            char_start: chunk.span.start,
            char_end: chunk.span.end,
            page_start: chunk.pages.map(|pages| pages.start),
            page_end: chunk.pages.map(|pages| pages.end),
        }
    }
}

/// A page of chunks, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkList {
    /// The chunks of the page.
    pub(crate) items: Vec<ChunkItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The extracted text of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentText {
    /// The document.
    #[schema(value_type = Id)]
    pub(crate) doc_id: DocId,
    /// The extracted text. Offsets count its Unicode code points.
    pub(crate) text: String,
}

/// Counts by layer.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct ByLayer {
    /// L1 documents.
    l1: u64,
    /// L2 sections.
    l2: u64,
    /// L3 subsections and passages.
    l3: u64,
    /// Chunks.
    chunks: u64,
}

impl From<Counts> for ByLayer {
    fn from(Counts { l1, l2, l3, chunks }: Counts) -> Self {
        Self { l1, l2, l3, chunks }
    }
}

/// The result of deleting a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedDocument {
    /// The id of the path.
    doc_id: String,
    /// The number of live points that were deleted.
    deleted: ByLayer,
    /// The sum of the counts.
    deleted_total: u64,
}

impl DeletedDocument {
    pub(crate) fn new(doc_id: DocId, counts: Counts) -> Self {
        Self { doc_id: doc_id.to_string(), deleted: counts.into(), deleted_total: counts.total() }
    }

    /// The result for a malformed id.
    pub(crate) fn nothing(id: &str) -> Self {
        let none = Counts::default();
        Self { doc_id: id.to_owned(), deleted: none.into(), deleted_total: 0 }
    }
}
