#![doc = include_str!("../README.md")]

mod clock;
mod document;
mod error;
mod file_name;
pub mod filter;
mod hex;
mod id;
mod layer;
mod short_id;
mod space;
mod sparse;
mod structure;

pub use clock::{Clock, SystemClock};
pub use document::{
    Counts, Creator, Dedup, Document, Fingerprint, MAX_LINE_CHARS, MAX_METADATA_KEYS, MAX_NEW_TEXT_BYTES,
    MAX_PROPERTIES_BYTES, Metadata, NewDocument, Original, RESERVED_METADATA,
};
pub use file_name::{content_type, is_markup, last_component, stem_and_suffix};
pub use filter::{FilterError, FilterExpr};
pub use hex::hex;
pub use id::{AuditId, DocId, EventId, GroupId, KeyId, ParseIdError, PointId, TaskId, WebhookId};
pub use layer::Layer;
pub use short_id::{restore_id, shorten_id};
pub use space::{InvalidSpaceName, KeyScope, Scope, SpaceName, is_space_name};
pub use sparse::SparseVector;
pub use structure::{Block, BlockKind, CharSpan, Chunk, IndexedTitle, Layered, Node, PageSpan, Parsed, Root};
