//! The indexes of tasks by space, and by the account and the API key that asked for them. A listing of what a caller may see reads
//! the entries of its spaces and of its account or key alone, so what others submit costs it nothing.
//!
//! Most tasks are done. Those that are not have entries by their status too, in each of these indexes and in one of all tasks, which
//! change in the steps that change the status. So a listing of the few failed tasks reads no others.

use std::collections::BTreeSet;

use lkr_domain::{SpaceName, TaskId};
use lkr_state::{Expect, Write};

use crate::{Catalog, Result, Task, TaskStatus, key};

/// Which tasks a listing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskLists {
    /// All tasks.
    All,
    /// The tasks of some spaces and those of an account.
    Of {
        /// The spaces in which the tasks were accepted.
        spaces: BTreeSet<SpaceName>,
        /// The id of the account, or of the API key, that asked for the tasks.
        asked_by: Option<String>,
    },
}

/// The tasks of some statuses, which have entries of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskGroup {
    /// Pending or running.
    Unfinished,
    /// Failed.
    Failed,
}

impl TaskGroup {
    /// The group of the tasks with a status; `None` for those that are done.
    pub(crate) const fn of(status: TaskStatus) -> Option<Self> {
        match status {
            TaskStatus::Pending | TaskStatus::Running => Some(Self::Unfinished),
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::Done => None,
        }
    }

    /// The name in keys.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Failed => "failed",
        }
    }
}

/// The prefixes of the lists that a task is in, whatever its status.
fn lists(task: &Task) -> impl Iterator<Item = String> {
    let space = task.space.as_ref().map(key::tasks_in_space);
    let account = (!task.created_by.id.is_empty()).then_some(&task.created_by.id);
    let asked_by = account.into_iter().chain(&task.key).map(|id| key::tasks_asked_by(id));
    space.into_iter().chain(asked_by)
}

/// The keys of a task's entries in the lists of a group.
fn group_keys(group: TaskGroup, task: &Task) -> impl Iterator<Item = String> {
    let (name, task_id) = (group.name(), task.task_id);
    let of_lists = lists(task).map(move |list| key::tasks_in_group(name, &list));
    let prefixes = std::iter::once(key::all_tasks_in_group(name)).chain(of_lists);
    prefixes.map(move |prefix| format!("{prefix}{task_id}"))
}

/// The keys of a task's entries.
pub(crate) fn keys(task: &Task) -> impl Iterator<Item = String> {
    let task_id = task.task_id;
    let in_group = TaskGroup::of(task.status).into_iter().flat_map(move |group| group_keys(group, task));
    lists(task).map(move |prefix| format!("{prefix}{task_id}")).chain(in_group)
}

/// The writes for a step in which a task gets its status, and had one of the group `from` before.
pub(crate) fn change_group(task: &Task, from: TaskGroup) -> impl Iterator<Item = Write> {
    let to = TaskGroup::of(task.status);
    let left = (to != Some(from)).then_some(from).into_iter().flat_map(move |group| group_keys(group, task));
    let entered = to.into_iter().flat_map(move |group| group_keys(group, task));
    let deleted = left.map(|key| Write::delete(key, Expect::Any));
    deleted.chain(entered.map(|key| Write::put(key, Expect::Any, Vec::new())))
}

/// The writes that add a task to its indexes.
pub(crate) fn put(task: &Task) -> impl Iterator<Item = Write> {
    keys(task).map(|key| Write::put(key, Expect::Any, Vec::new()))
}

/// The writes that remove a task from its indexes.
pub(crate) fn delete(task: &Task) -> impl Iterator<Item = Write> {
    keys(task).map(|key| Write::delete(key, Expect::Any))
}

impl Catalog {
    /// A task of some lists. The indexes are read first, so a task that is in none of the lists takes the same reads as one that
    /// does not exist.
    pub async fn task_in(&self, lists: &TaskLists, task_id: TaskId) -> Result<Option<Task>> {
        if let Some(prefixes) = lists.prefixes(None) {
            let keys: Vec<String> = prefixes.into_iter().map(|prefix| format!("{prefix}{task_id}")).collect();
            if self.state.get_many(&keys).await?.iter().all(Option::is_none) {
                return Ok(None);
            }
        }
        self.task(task_id).await
    }

    /// Writes the entries of a task in its indexes.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn index_task(&self, task: &Task) -> Result<()> {
        Ok(self.state.apply(put(task).collect()).await?)
    }

    /// Whether the indexes contain a task.
    ///
    /// # Errors
    /// Errors of the state store.
    pub async fn is_task_indexed(&self, task: &Task) -> Result<bool> {
        let keys: Vec<String> = keys(task).collect();
        Ok(self.state.get_many(&keys).await?.iter().all(Option::is_some))
    }

    /// Whether this is the key of an entry of the task in an index.
    #[must_use]
    pub fn is_entry_of(key: &str, task: &Task) -> bool {
        keys(task).any(|own| own == key)
    }
}

impl TaskLists {
    /// The prefixes of the indexes to read for tasks of any status, or of a group; `None` if that is the records of all tasks.
    pub(crate) fn prefixes(&self, group: Option<TaskGroup>) -> Option<Vec<String>> {
        let Self::Of { spaces, asked_by } = self else {
            return group.map(|group| vec![key::all_tasks_in_group(group.name())]);
        };
        let asked_by = asked_by.as_deref().filter(|id| !id.is_empty());
        let lists = spaces.iter().map(key::tasks_in_space).chain(asked_by.map(key::tasks_asked_by));
        Some(match group {
            Some(group) => lists.map(|list| key::tasks_in_group(group.name(), &list)).collect(),
            None => lists.collect(),
        })
    }
}

#[cfg(test)]
mod tests;
