//! The events that a step reports.

use std::fmt::Debug;

use lkr_domain::{DocId, SpaceName};
use lkr_state::Write;
use time::OffsetDateTime;

use crate::Task;

/// Builds events for ended tasks and deleted documents. Their writes are part of the step itself, so an event exists if
/// and only if the step happened.
pub trait Outbox: Debug + Send + Sync + 'static {
    /// The writes that report the end of a task. The task has its final state.
    fn task_ended(&self, task: &Task) -> Vec<Write>;

    /// The writes that report the deletion of a live document, which was in `space`, at this time.
    fn document_deleted(&self, doc_id: DocId, space: &SpaceName, at: OffsetDateTime) -> Vec<Write>;
}
