//! What a task that deletes documents has deleted so far.

use lkr_domain::{Counts, TaskId};
use lkr_state::{Expect, StateStoreExt, Write};

use crate::{Catalog, DeleteResult, Error, Result, key};

/// What a task has deleted in all its attempts. Each deletion adds itself in its own step, so a process that ends between
/// two deletions loses no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialResult {
    /// The documents and points that were deleted.
    pub result: DeleteResult,
    version: Option<u64>,
}

impl PartialResult {
    /// The write that adds a document with these points. It fails if another deletion was added since.
    pub(crate) fn add(&self, task_id: TaskId, counts: Counts) -> Result<Write> {
        let mut result = self.result;
        result.documents += 1;
        result.deleted += counts;
        let expect = self.version.map_or(Expect::Absent, Expect::Version);
        let record = serde_json::to_vec(&result).map_err(|e| Error::corrupt("write partial result", e))?;
        Ok(Write::put(key::partial_result(task_id), expect, record))
    }
}

impl Catalog {
    /// What a task has deleted so far; nothing for a task that has ended.
    pub async fn partial_result(&self, task_id: TaskId) -> Result<PartialResult> {
        let Some(record) = self.state.get(&key::partial_result(task_id)).await? else {
            return Ok(PartialResult { result: DeleteResult::default(), version: None });
        };
        Ok(PartialResult { result: decode(&record.value)?, version: Some(record.version) })
    }
}

pub(crate) fn decode(record: &[u8]) -> Result<DeleteResult> {
    serde_json::from_slice(record).map_err(|e| Error::corrupt("read partial result", e))
}

/// The writes that remove what a task needs only while it is unfinished, or failed and may be retried.
pub(crate) fn discard_working_records(task_id: TaskId) -> [Write; 2] {
    [key::task_input(task_id), key::partial_result(task_id)].map(|key| Write::delete(key, Expect::Any))
}
