//! Watching all tasks.

use lkr_catalog::{Task, TaskChange};
use lkr_domain::TaskId;

use crate::{
    KnowledgeBase, Result,
    error::{During, check_limit},
};

impl KnowledgeBase {
    /// The last change of each task that changed within [`CHANGE_KEPT`](crate::CHANGE_KEPT), in any process. Who asks at least
    /// that often misses none.
    pub async fn task_changes(&self) -> Result<Vec<TaskChange>> {
        self.shared.catalog.task_changes().await.during("read task changes")
    }

    /// Those of several tasks that exist, in the order of `ids`.
    pub async fn tasks_with(&self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.shared.catalog.tasks_with(ids).await.during("read tasks")
    }

    /// Up to `limit` unfinished tasks, beyond `after`, and where the next page begins.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn unfinished_tasks(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Task>, Option<String>)> {
        check_limit(limit, "list tasks")?;
        let (ids, next) = self.shared.catalog.unfinished(after, limit).await.during("list tasks")?;
        Ok((self.tasks_with(&ids).await?, next))
    }
}
