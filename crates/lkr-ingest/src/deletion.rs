use std::fmt::Debug;

use async_trait::async_trait;
use lkr_catalog::Task;
use lkr_domain::{DocId, Document, SpaceName};
use lkr_state::Write;

use crate::Result;

/// What tasks that delete documents ask the program that runs them. It may have changed its mind since it accepted the
/// task.
#[async_trait]
pub trait DeletionPolicy: Debug + Send + Sync + 'static {
    /// Whether the creator of the task may delete this document now.
    async fn may_delete(&self, task: &Task, document: &Document) -> Result<bool>;

    /// Additional records, such as an audit entry, of the step that deletes a document.
    fn on_delete(&self, task: &Task, doc_id: DocId) -> Vec<Write>;

    /// Additional records of the step that ends the deletion of a space.
    async fn end_space(&self, space: &SpaceName) -> Result<Vec<Write>>;
}
