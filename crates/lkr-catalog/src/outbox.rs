//! Who is told of what happened, in the very step in which it does.

use std::fmt::Debug;

use lkr_domain::DocId;
use lkr_state::Write;

use crate::Task;

/// What hears of tasks that ended and documents that were deleted. What it answers is written in the step itself, so
/// that nothing that happened goes untold, and nothing is told that did not happen.
pub trait Outbox: Debug + Send + Sync + 'static {
    /// A task is about to end as it is.
    fn task_ended(&self, task: &Task) -> Vec<Write>;

    /// A live document is about to go.
    fn document_deleted(&self, doc_id: DocId) -> Vec<Write>;
}
