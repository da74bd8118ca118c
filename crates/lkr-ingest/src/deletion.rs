use std::fmt::Debug;

use async_trait::async_trait;
use lkr_catalog::Task;
use lkr_domain::{DocId, Document, SpaceName};
use lkr_state::Write;

use crate::Result;

/// What tasks that delete documents ask the program that runs them. Rights may have changed since it accepted the task.
#[async_trait]
pub trait DeletionPolicy: Debug + Send + Sync + 'static {
    /// Whether the creator of the task may delete this document now. `key` is the id of the API key by which the task was
    /// accepted; without it, the task was accepted by a login.
    async fn may_delete(&self, task: &Task, key: Option<&str>, document: &Document) -> Result<bool>;

    /// Additional records, such as an audit entry, of the step that deletes a document.
    fn on_delete(&self, task: &Task, doc_id: DocId) -> Result<Vec<Write>>;
}

/// The records of spaces, as far as deleting one and retrying a task in one need them.
#[async_trait]
pub trait SpaceRecords: Debug + Send + Sync + 'static {
    /// The writes that a step must contain which makes a new document of the space pending again; `None` if the space was
    /// deleted, or is being deleted.
    async fn admit(&self, space: &SpaceName) -> Result<Option<Vec<Write>>>;

    /// Removes the records of a space whose deletion `task` began, and applies `end` in the same step. Returns `false`,
    /// and writes nothing, if there are no such records.
    async fn remove_space(&self, task: &Task, space: &SpaceName, end: Vec<Write>) -> Result<bool>;
}
