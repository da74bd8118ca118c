//! Vector stores, their files, and the content of a file.

use lkr::{Document, spaces::SpaceCounts};
use lkr_spaces::Space;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::attributes::document_attributes;

/// A space as a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreItem {
    /// The name of the space.
    id: String,
    /// vector_store
    object: &'static str,
    /// Unix time in seconds.
    created_at: i64,
    /// The title of the space, or its name if it has none.
    name: String,
    /// 0: the bytes of a space are not counted.
    usage_bytes: u64,
    /// The number of documents.
    file_counts: FileCountsItem,
    /// completed
    status: &'static str,
    /// The last change of the space's properties, as Unix time in seconds.
    last_active_at: i64,
    /// description, if the space has one.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    metadata: Map<String, Value>,
}

/// The number of documents in a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileCountsItem {
    /// Unfinished tasks.
    in_progress: u64,
    /// Documents that can be searched.
    completed: u64,
    /// 0: a failed task leaves no document.
    failed: u64,
    /// 0: a cancelled task leaves no document.
    cancelled: u64,
    /// All of them.
    total: u64,
}

impl VectorStoreItem {
    pub(crate) fn new(space: Space, counts: SpaceCounts) -> Self {
        let id = String::from(space.name);
        let description = Some(space.description).filter(|description| !description.is_empty());
        let metadata = description.map(|text| ("description".to_owned(), Value::String(text)));
        Self {
            object: "vector_store",
            created_at: space.created_at.unix_timestamp(),
            name: if space.title.is_empty() { id.clone() } else { space.title },
            id,
            usage_bytes: 0,
            file_counts: FileCountsItem::from(counts),
            status: "completed",
            last_active_at: space.updated_at.unix_timestamp(),
            metadata: metadata.into_iter().collect(),
        }
    }
}

impl From<SpaceCounts> for FileCountsItem {
    /// Failed and cancelled tasks leave no document, so none is counted.
    fn from(SpaceCounts { live, unfinished }: SpaceCounts) -> Self {
        Self { in_progress: unfinished, completed: live, failed: 0, cancelled: 0, total: live + unfinished }
    }
}

/// A page of vector stores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreList {
    /// list
    object: &'static str,
    /// The vector stores of the page.
    data: Vec<VectorStoreItem>,
    /// The id of the first object of the page; null if it is empty.
    #[schema(required)]
    first_id: Option<String>,
    /// The id of the last object of the page; null if it is empty.
    #[schema(required)]
    last_id: Option<String>,
    /// Whether more objects follow in the direction of reading.
    has_more: bool,
}

impl VectorStoreList {
    pub(crate) fn new(data: Vec<VectorStoreItem>, has_more: bool) -> Self {
        let id_of = |object: Option<&VectorStoreItem>| object.map(|object| object.id.clone());
        let (first_id, last_id) = (id_of(data.first()), id_of(data.last()));
        Self { object: "list", data, first_id, last_id, has_more }
    }
}

/// A document as a file of a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreFileItem {
    /// The id of the document.
    id: String,
    /// vector_store.file
    object: &'static str,
    /// When the document was first published, as Unix time in seconds.
    created_at: i64,
    /// The name of the space.
    vector_store_id: String,
    /// completed: a document is listed once it can be searched.
    status: &'static str,
    /// The size of the stored original; 0 without one.
    usage_bytes: u64,
    /// Null.
    #[schema(value_type = Option<String>, required)]
    last_error: (),
    /// The metadata, and other fields under names that begin with `lkr.`.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    attributes: Map<String, Value>,
    /// How the document was cut into chunks.
    chunking_strategy: ChunkingStrategy,
}

/// How files are cut into chunks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkingStrategy {
    /// other: chunks follow the structure of a document.
    r#type: &'static str,
}

impl VectorStoreFileItem {
    pub(crate) fn new(document: &Document) -> Self {
        Self {
            id: document.doc_id.to_string(),
            object: "vector_store.file",
            created_at: document.created_at.unix_timestamp(),
            vector_store_id: document.space.to_string(),
            status: "completed",
            usage_bytes: document.original.as_ref().map_or(0, |original| original.size_bytes),
            last_error: (),
            attributes: document_attributes(document),
            chunking_strategy: ChunkingStrategy { r#type: "other" },
        }
    }
}

/// A page of the files of a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreFileList {
    /// list
    object: &'static str,
    /// The files of the page.
    data: Vec<VectorStoreFileItem>,
    /// The id of the first object of the page; null if it is empty.
    #[schema(required)]
    first_id: Option<String>,
    /// The id of the last object of the page; null if it is empty.
    #[schema(required)]
    last_id: Option<String>,
    /// Whether more objects follow in the direction of reading.
    has_more: bool,
}

impl VectorStoreFileList {
    pub(crate) fn new(data: Vec<VectorStoreFileItem>, has_more: bool) -> Self {
        let id_of = |object: Option<&VectorStoreFileItem>| object.map(|object| object.id.clone());
        let (first_id, last_id) = (id_of(data.first()), id_of(data.last()));
        Self { object: "list", data, first_id, last_id, has_more }
    }
}

/// The extracted text of a file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileContent {
    /// vector_store.file_content.page
    pub(crate) object: &'static str,
    /// One part, which is the whole text.
    pub(crate) data: [TextContent; 1],
    /// false
    pub(crate) has_more: bool,
    /// Null.
    #[schema(value_type = Option<String>, required)]
    pub(crate) next_page: (),
}

/// A text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextContent {
    /// text
    pub(crate) r#type: &'static str,
    /// The text.
    pub(crate) text: String,
}

impl TextContent {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { r#type: "text", text: text.into() }
    }
}
