#![doc = include_str!("../README.md")]

mod blob;
mod catalog;
mod change;
mod document;
mod error;
mod listing;
mod originals;
mod points;
mod properties;
mod stats;
mod tags;
mod task;
mod texts;
mod transitions;
mod uploads;

pub use catalog::{Catalog, Stored};
pub use change::ChangeNote;
pub use error::{Error, ErrorKind, Result};
pub use listing::{ListFilter, Page};
pub use originals::{Originals, StoredOriginal, original_path, stored_name};
pub use points::{
    NodeRecord, PointSource, chunk_of, chunks, l1_id, l1_of, node_of, nodes, points_in, points_of,
};
pub use properties::{Excess, check_properties};
pub use stats::{Stats, UNCATEGORIZED};
pub use tags::{metadata_tag, tag, tags_of};
pub use task::{
    DocumentResult, Progress, ReclassifyResult, Stage, Task, TaskFailure, TaskInput, TaskKind, TaskResult,
    TaskStatus, Usage,
};
pub use texts::{ExtractedText, Texts};
pub use transitions::{Active, Deleted, Trash};
pub use uploads::Upload;
