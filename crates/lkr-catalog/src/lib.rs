#![doc = include_str!("../README.md")]

mod accept;
mod active_task;
mod blob;
mod catalog;
mod change;
mod collection_phase;
mod concurrent_edit;
mod document;
mod document_record;
mod document_state;
mod embedding;
mod error;
mod fingerprint_changes;
mod finish;
mod garbage;
mod gc_pause;
mod kept_record;
mod key;
mod limits;
mod listing;
mod merged_ids;
mod original_path;
mod originals;
mod outbox;
mod partial_result;
mod points;
mod record_cache;
mod referenced;
mod remove;
mod restore;
mod retry;
mod scan;
mod space_index;
mod stats;
mod sweep;
mod tags;
mod task;
mod task_changes;
mod task_failure;
mod task_index;
mod task_record;
mod task_result;
mod task_status;
mod text_claims;
mod text_index;
mod text_owner;
mod texts;
mod uploads;
mod verified;
mod version;

pub use accept::{Acceptance, Idempotency, IdempotencyRecord};
pub use active_task::ActiveTask;
pub use catalog::{Catalog, Stored};
pub use change::ChangeNote;
pub use collection_phase::{Arrival, CollectionPhase, CollectionState, LiveCollections};
pub use concurrent_edit::{ConcurrentEdit, DocumentChange};
pub use document::DocumentTitle;
pub use document_record::DocumentRecord;
pub use document_state::{DocumentState, FailedAttempt, UnfinishedTask};
pub use embedding::Unembedded;
pub use error::{Error, ErrorKind, Result};
pub use fingerprint_changes::{FINGERPRINT_CHANGE_KEPT, FingerprintChange};
pub use garbage::Garbage;
pub use kept_record::{
    KeptRecord, RestoredContent, adopt_tags, keep_record, kept_record, restore_document, updated_by,
};
pub use limits::{LimitExceeded, check_line, check_properties, check_text, check_text_bytes};
pub use listing::{ListFilter, ListOrder, Page};
pub use original_path::{original_path, replaced_path, stored_name};
pub use originals::{Originals, StoredOriginal};
pub use outbox::Outbox;
pub use partial_result::PartialResult;
pub use points::{
    L1Content, NodeRecord, PointSource, chunk_of, chunks, l1_id, l1_of, node_of, nodes, points_in, points_of,
};
pub use referenced::ReferencedRevision;
pub use remove::Deleted;
pub use scan::{RecordContent, ScannedRecord};
pub use stats::{Stats, UNCATEGORIZED};
pub use tags::{has_tags_of, metadata_tag, tag, tags_of};
pub use task::{CorpusSlot, ModelName, Task, TaskInput, TaskKind, TaskSubject};
pub use task_changes::{CHANGE_KEPT, TaskChange};
pub use task_failure::{FailureReason, TaskFailure};
pub use task_index::TaskLists;
pub use task_result::{
    DeleteResult, DocumentResult, Duplicate, EvaluateResult, ModelUsage, ReclassifyResult, ReembedResult,
    SearchQuality, TaskResult,
};
pub use task_status::{Progress, Stage, TaskStatus};
pub use text_claims::{StoredTextClaim, TextClaims, is_near};
pub use text_index::{UniqueText, text_digest};
pub use text_owner::TextOwner;
pub use texts::{ContentDigests, ExtractedText, Texts};
pub use uploads::Upload;
pub use version::{FIRST_WITH_SPACES, STORE_VERSION};
