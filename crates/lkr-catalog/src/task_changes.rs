//! Which tasks changed lately. Each step that writes a task's record also puts a mark under the task's id, which expires soon.
//! So a scan of a few small records tells of every change, whichever process made it.

use std::{str::FromStr, time::Duration};

use lkr_domain::TaskId;
use lkr_state::{Expect, ScanOrder, Write};

use crate::{
    Catalog, Result, Task, key,
    task_index::{self, TaskGroup},
    task_record::write_task,
};

/// How long a mark is kept. Who reads the changes at least this often misses none.
pub const CHANGE_KEPT: Duration = Duration::from_secs(30);

/// Marks per scan.
const BATCH: usize = 1_000;

/// That a task changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskChange {
    /// The task.
    pub task_id: TaskId,
    /// Grows with each change of the task.
    pub version: u64,
}

/// The writes of a task's record and of its mark, for a new task or one whose status stays in its group.
///
/// # Errors
/// `Corrupt` if the task cannot be encoded.
pub(crate) fn put(task: &Task, expect: Expect) -> Result<[Write; 2]> {
    let record = Write::put(key::task(task.task_id), expect, write_task(task)?);
    let mark = Write::put_for(key::task_change(task.task_id), Expect::Any, Vec::new(), CHANGE_KEPT);
    Ok([record, mark])
}

/// The writes of the record of a task that gets its status and had one of the group `from` before, of its mark, and of its entries in
/// the indexes by status.
///
/// # Errors
/// `Corrupt` if the task cannot be encoded.
pub(crate) fn put_status(task: &Task, expect: Expect, from: TaskGroup) -> Result<Vec<Write>> {
    let mut writes = Vec::from(put(task, expect)?);
    writes.extend(task_index::change_group(task, from));
    Ok(writes)
}

impl Catalog {
    /// The last change of each task that changed within [`CHANGE_KEPT`]. A task that was removed since is among them.
    pub async fn task_changes(&self) -> Result<Vec<TaskChange>> {
        let marks = self.marks(key::TASK_CHANGES).await?;
        Ok(marks.into_iter().map(|(task_id, version)| TaskChange { task_id, version }).collect())
    }

    /// The ids of all marks with a key prefix, and their versions.
    pub(crate) async fn marks<T: FromStr>(&self, prefix: &str) -> Result<Vec<(T, u64)>> {
        let (mut marks, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.state.scan(prefix, after.as_deref(), ScanOrder::Ascending, BATCH).await?;
            let mark = |(key, record): &(String, lkr_state::Record)| {
                Some((key.strip_prefix(prefix)?.parse().ok()?, record.version))
            };
            marks.extend(page.iter().filter_map(mark));
            if page.len() < BATCH {
                return Ok(marks);
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
        }
    }
}
