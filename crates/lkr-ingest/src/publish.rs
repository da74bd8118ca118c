//! Making what a task made visible.

use lkr_catalog::{Task, TaskResult, tags_of};
use lkr_state::Write;
use lkr_vectors::{Condition, Filter};

use crate::{
    Error, ErrorKind, Result,
    collection_sets::set_tags_everywhere,
    draft::Draft,
    ingestor::{CONTENDED_TRIES, Inner},
};

/// Makes the document visible in place of what there was of it, and ends its task. What was changed by hand since the
/// task was accepted is in force: points get other tags where it needs them. False where `free`, which says that no
/// document has this text, may not hold any more.
pub(crate) async fn publish(
    inner: &Inner,
    draft: &Draft,
    task: &Task,
    has_dense: bool,
    free: &[Write],
) -> Result<bool> {
    let catalog = &inner.ports.catalog;
    let mut tags = draft.tags.clone();
    for attempt in 0..CONTENDED_TRIES {
        let present = catalog.document_state(task.doc_id()?).await?;
        let wanted = present.unfinished.as_ref().is_some_and(|now| now.task.task_id == task.task_id);
        if !wanted {
            return Err(Error::new(ErrorKind::Overtaken, "publish", "the task is not wanted any more"));
        }
        if attempt > 0 && !free.is_empty() {
            return Ok(false);
        }
        let document = present.settle(&draft.document);
        if tags_of(&document) != tags {
            tags = tags_of(&document);
            let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
            set_tags_everywhere(&*inner.ports.vectors, &filter, &tags).await?;
        }
        let task = told(task, &document.title, &document.category);
        match catalog.publish(&present, &document, &task, has_dense, free.to_vec()).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            published => {
                published?;
                inner.twins.published(&document);
                inner.drop_originals(task.doc_id()?, &present.originals_before(document.revision)).await;
                inner.garbage.notify_one();
                return Ok(true);
            }
        }
    }
    Err(Error::new(ErrorKind::StoreAway, "publish", "the document kept changing meanwhile"))
}

/// The task, whose result tells how the document stands.
fn told(task: &Task, title: &str, category: &str) -> Task {
    let mut task = task.clone();
    if let Some(TaskResult::Document(result)) = &mut task.result {
        title.clone_into(&mut result.title);
        category.clone_into(&mut result.category);
    }
    task
}
