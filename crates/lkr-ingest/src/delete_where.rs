//! The task that deletes the documents that match a filter.

use lkr_catalog::{ActiveTask, DeleteResult, ListFilter, Progress, Stage, Task, TaskResult};
use lkr_domain::{Clock, Creator, DocId, Document, FilterExpr, Scope, SpaceName};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, lifecycle, report::Report, state::IngestState};

/// The number of documents that are listed at a time.
const PAGE: usize = 100;

/// What a bulk delete is about.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkDelete {
    /// The filter that the documents match.
    pub filter_expr: FilterExpr,
    /// The spaces in which they are. Rights are looked at again for each document.
    pub scope: Scope,
    /// Whether only documents that the task's creator added are deleted.
    pub own_only: bool,
}

/// The stored form of a bulk delete.
#[derive(Debug, Serialize, Deserialize)]
struct BulkDeleteV1 {
    #[serde(rename = "where")]
    filter_expr: serde_json::Value,
    /// All spaces if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spaces: Option<Vec<SpaceName>>,
    #[serde(default)]
    own_only: bool,
    /// Documents with greater ids came after the task.
    newest: DocId,
}

/// The additional input of the task.
pub(crate) fn encode(clock: &dyn Clock, delete: &BulkDelete) -> Result<Vec<u8>> {
    let spaces = match &delete.scope {
        Scope::All => None,
        Scope::Spaces(spaces) => Some(spaces.iter().cloned().collect()),
    };
    let input = BulkDeleteV1 {
        filter_expr: delete.filter_expr.to_json(),
        spaces,
        own_only: delete.own_only,
        newest: DocId::new_by(clock),
    };
    serde_json::to_vec(&input).map_err(|error| Error::new(ErrorKind::Internal, "delete documents", error))
}

/// Deletes the documents of the task, the newest first, and ends the task. What a cancelled task deleted stays deleted. A
/// repeated attempt continues with what is left.
pub(crate) async fn delete_where(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let catalog = &state.ports.catalog;
    let selection = read_input(state, task).await?;
    let total =
        catalog.count(&selection.scope, &selection.filter, |document| selection.is_met(document)).await?;
    let mut progress = Progress { done: 0, total };
    report.progress(Stage::Delete, progress);
    let mut result = DeleteResult::default();
    let mut after: Option<DocId> = None;
    loop {
        let page = catalog.list(&selection.scope, &selection.filter, after, PAGE).await?;
        for document in page.items.iter().filter(|document| selection.is_met(document)) {
            if let Some(counts) = delete_if_allowed(state, task, document).await? {
                result.deleted += counts;
                result.documents += 1;
            }
            progress.done += 1;
            progress.total = progress.total.max(progress.done);
            report.progress(Stage::Delete, progress);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let done = task.done(catalog.now(), Stage::Delete, progress.done, TaskResult::Deleted(result));
    Ok(catalog.end(active, &done).await?)
}

/// The documents that a task is about.
struct Selection {
    scope: Scope,
    filter: ListFilter,
    newest: DocId,
    /// The only account whose documents are deleted.
    owner: Option<Creator>,
}

impl Selection {
    fn is_met(&self, document: &Document) -> bool {
        let is_owned = |owner: &Creator| document.created_by.is(&owner.id);
        document.doc_id <= self.newest && self.owner.as_ref().is_none_or(is_owned)
    }
}

async fn read_input(state: &IngestState, task: &Task) -> Result<Selection> {
    let fail = |reason: String| Error::new(ErrorKind::Internal, "delete documents", reason);
    let input = state.ports.catalog.task_input(task.task_id).await?;
    let input = input.ok_or_else(|| fail("the filter of the task is missing".to_owned()))?;
    let input: BulkDeleteV1 = serde_json::from_slice(&input).map_err(|error| fail(error.to_string()))?;
    let expr = FilterExpr::parse("where", &input.filter_expr).map_err(|error| fail(error.to_string()))?;
    Ok(Selection {
        scope: input.spaces.map_or(Scope::All, Scope::from_iter),
        filter: ListFilter { filter_expr: Some(expr), ..ListFilter::default() },
        newest: input.newest,
        owner: input.own_only.then(|| task.created_by.clone()),
    })
}

/// Deletes a document if the creator of the task may do so now; `None` if not.
async fn delete_if_allowed(
    state: &IngestState,
    task: &Task,
    document: &Document,
) -> Result<Option<lkr_domain::Counts>> {
    let mut alongside = Vec::new();
    if let Some(deletion) = &state.ports.deletion {
        if !deletion.may_delete(task, document).await? {
            return Ok(None);
        }
        alongside = deletion.on_delete(task, document.doc_id)?;
    }
    Ok(Some(lifecycle::delete(state, document.doc_id, alongside).await?.counts))
}
