#![doc = include_str!("../README.md")]

mod accept;
mod again;
mod amendment;
mod blob;
mod catalog;
mod change;
mod document;
mod embedding;
mod error;
mod finish;
mod index;
mod kept;
mod listing;
mod originals;
mod outbox;
mod points;
mod present;
mod properties;
mod remove;
mod stats;
mod survey;
mod tags;
mod task;
mod texts;
mod trash;
mod uploads;
mod verified;
mod version;

pub use accept::{Acceptance, Idempotency, Remembered};
pub use amendment::{Amendment, DocumentChange};
pub use catalog::{Catalog, Stored};
pub use change::ChangeNote;
pub use error::{Error, ErrorKind, Result};
pub use index::Free;
pub use kept::Kept;
pub use listing::{ListFilter, Page};
pub use originals::{Originals, StoredOriginal, original_path, replaced_path, stored_name};
pub use outbox::Outbox;
pub use points::{
    NodeRecord, PointSource, chunk_of, chunks, l1_id, l1_of, node_of, nodes, points_in, points_of,
};
pub use present::{Active, Held, Present, Unfinished};
pub use properties::{Excess, check_properties};
pub use remove::Deleted;
pub use stats::{Stats, UNCATEGORIZED};
pub use survey::{Entry, Surveyed};
pub use tags::{metadata_tag, tag, tags_of};
pub use task::{
    DocumentResult, Duplicate, EvaluateResult, Figures, ModelName, Progress, ReclassifyResult, ReembedResult,
    Stage, Task, TaskFailure, TaskInput, TaskKind, TaskResult, TaskStatus, Usage,
};
pub use texts::{Digests, ExtractedText, Texts};
pub use trash::Trash;
pub use uploads::Upload;
pub use version::STORE_VERSION;
