//! The task that deletes the documents that match a filter.

use lkr_catalog::{ActiveTask, Catalog, ListFilter, Progress, Stage, Task, TaskResult};
use lkr_domain::{Creator, DocId, Document, FilterExpr, Scope, SpaceName};
use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorKind, Result,
    report::Report,
    state::IngestState,
    task_deletion::{TaskCreator, TaskDeletion},
};

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
    /// The id of the API key by which the task is accepted. When the key is revoked, nothing more is deleted.
    pub key: Option<String>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Documents with greater ids came after the task, except those that are ahead.
    newest: DocId,
    /// The least and the greatest id of the documents with greater ids that came before the task: the clock was ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<(DocId, DocId)>,
}

/// The additional input of the task.
pub(crate) async fn encode(catalog: &Catalog, delete: &BulkDelete) -> Result<Vec<u8>> {
    let (newest, ahead) = read_ids(catalog, &delete.scope).await?;
    let spaces = match &delete.scope {
        Scope::All => None,
        Scope::Spaces(spaces) => Some(spaces.iter().cloned().collect()),
    };
    let input = BulkDeleteV1 {
        filter_expr: delete.filter_expr.to_json(),
        spaces,
        own_only: delete.own_only,
        key: delete.key.clone(),
        newest,
        ahead,
    };
    serde_json::to_vec(&input).map_err(|error| Error::new(ErrorKind::Internal, "delete documents", error))
}

/// A new id, and the least and the greatest of those ids of documents in the scope that are greater. There are such ones if the
/// clock was set back after documents were added.
async fn read_ids(catalog: &Catalog, scope: &Scope) -> Result<(DocId, Option<(DocId, DocId)>)> {
    let (mut ahead, mut after) = (None, None);
    loop {
        let page = catalog.list(scope, &ListFilter::default(), after, PAGE).await?;
        // Made after the listing, so that no document that was added meanwhile counts as ahead.
        let newest = DocId::new_by(catalog.clock());
        for document in &page.items {
            let id = document.doc_id;
            if id <= newest {
                return Ok((newest, ahead));
            }
            ahead = Some((id, ahead.map_or(id, |(_, greatest)| greatest)));
        }
        after = page.next;
        if after.is_none() {
            return Ok((newest, ahead));
        }
    }
}

/// Deletes the documents of the task, the newest first, and ends the task. What a cancelled task deleted stays deleted. A
/// repeated attempt continues with what is left, and its result counts all attempts.
///
/// One pass is enough: a listing contains each document that is in the scope and matches throughout, even if it moves
/// from one space of the scope to another meanwhile.
pub(crate) async fn delete_where(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let catalog = &state.ports.catalog;
    let selection = read_input(state, task).await?;
    let selects = |document: &Document| selection.is_met(document);
    let left = catalog.count(&selection.scope, &selection.filter, selects).await?;
    let mut result = catalog.partial_result(task.task_id).await?.result;
    let mut progress = Progress { done: result.documents, total: result.documents + left };
    report.progress(Stage::Delete, progress);
    let rights_of = Some(TaskCreator { key: selection.key.as_deref() });
    let deletion = TaskDeletion { state, active, task, selects: &selects, rights_of };
    let mut after: Option<DocId> = None;
    loop {
        let page = catalog.list(&selection.scope, &selection.filter, after, PAGE).await?;
        for document in page.items.iter().filter(|document| selects(document)) {
            result = deletion.delete(document.doc_id).await?.unwrap_or(result);
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
    ahead: Option<(DocId, DocId)>,
    /// The only account whose documents are deleted.
    owner: Option<Creator>,
    key: Option<String>,
}

impl Selection {
    fn is_met(&self, document: &Document) -> bool {
        let is_owned = |owner: &Creator| document.created_by.is(&owner.id);
        self.came_before(document.doc_id)
            && self.owner.as_ref().is_none_or(is_owned)
            && self.scope.contains(&document.space)
            && self.filter.shows(document)
    }

    fn came_before(&self, id: DocId) -> bool {
        id <= self.newest || self.ahead.is_some_and(|(least, greatest)| (least..=greatest).contains(&id))
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
        ahead: input.ahead,
        owner: input.own_only.then(|| task.created_by.clone()),
        key: input.key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_came_later_are_told_from_those_that_are_ahead() {
        let id = |n: u8| DocId::from_bytes([n; 16]);
        let (newest, filter) = (id(3), ListFilter::default());
        let mut selection =
            Selection { scope: Scope::All, filter, newest, ahead: None, owner: None, key: None };
        let came_before =
            |selection: &Selection| (1..=8).filter(|&n| selection.came_before(id(n))).collect::<Vec<u8>>();
        assert_eq!(came_before(&selection), [1, 2, 3]);
        selection.ahead = Some((id(5), id(7)));
        assert_eq!(came_before(&selection), [1, 2, 3, 5, 6, 7]);
    }
}
