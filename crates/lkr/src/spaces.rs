//! Spaces: what a caller may read, and deleting a space with its documents.

use async_trait::async_trait;
use lkr_catalog::{ListOrder, Page, Task};
use lkr_domain::{Creator, DocId, Document, Scope, SpaceName};
use lkr_ingest::{BulkDelete, SpaceRecords};
pub use lkr_spaces::{
    Caller, Directory, Group, GroupId, GroupMember, GroupName, KeyScope, Member, MemberId, NewGroup,
    NewSpace, ReadPolicy, Space, SpaceChange, SpaceRole, Spaces, WriteAccess, WritePolicy,
};
use lkr_state::Write;

use crate::{
    Error, KnowledgeBase, Result,
    error::{During, check_limit},
};

/// What a space contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceCounts {
    /// The number of live documents.
    pub live: u64,
    /// The number of tasks that have not ended.
    pub unfinished: u64,
}

impl KnowledgeBase {
    /// The spaces, groups and members of this knowledge base.
    #[must_use]
    pub fn spaces(&self) -> &Spaces {
        &self.shared.spaces
    }

    /// The scope of a caller: all that it may read, or `named`.
    ///
    /// # Errors
    /// `NotFound`, with the first named space that the caller may not read.
    pub async fn scope_of(&self, caller: &Caller, named: Option<&[SpaceName]>) -> Result<Scope> {
        let directory = self.shared.spaces.directory().await.during("read spaces")?;
        directory.resolve(caller, named).map_err(|unknown| {
            Error::new(crate::ErrorKind::NotFound, "search", format!("no space has the name {unknown}"))
        })
    }

    /// A live document of the scope. A document outside the scope takes the same reads as one that does not exist.
    pub async fn document_in(&self, scope: &Scope, doc_id: DocId) -> Result<Option<Document>> {
        self.shared.catalog.document_in(scope, doc_id).await.during("read document")
    }

    /// The space and the creator of a document of the scope: a live one, an unfinished one, or a failed one that can be
    /// retried.
    pub async fn home(&self, scope: &Scope, doc_id: DocId) -> Result<Option<(SpaceName, Creator)>> {
        let of_document = |document: Document| (document.space, document.created_by);
        if let Some(document) = self.document_in(scope, doc_id).await? {
            return Ok(Some(of_document(document)));
        }
        let task = self.shared.catalog.latest_task_of(doc_id).await.during("read document")?;
        let home = task.map(|task| (task.space.unwrap_or_default(), task.created_by));
        if let Some(home) = home.filter(|(space, _)| scope.contains(space)) {
            return Ok(Some(home));
        }
        // Its task may have ended, and so made it live, between the two reads.
        Ok(self.document_in(scope, doc_id).await?.map(of_document))
    }

    /// The live documents of the scope among these, in their order.
    pub async fn documents_among(&self, scope: &Scope, doc_ids: &[DocId]) -> Result<Vec<Document>> {
        let documents = self.shared.catalog.documents(doc_ids).await.during("read documents")?;
        let live = documents.into_iter().flatten();
        Ok(live.filter(|document| scope.contains(&document.space)).collect())
    }

    /// The live documents of a space in an order, starting after `after`.
    ///
    /// # Errors
    /// `Invalid` if `limit` is 0.
    pub async fn list_space(
        &self,
        space: &SpaceName,
        order: ListOrder,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        check_limit(limit, "list documents")?;
        self.shared.catalog.list_space(space, order, after, limit).await.during("list documents")
    }

    /// The number of live documents in a space, and of tasks in it that have not ended.
    pub async fn documents_in(&self, space: &SpaceName) -> Result<u64> {
        let SpaceCounts { live, unfinished } = self.space_counts(space).await?;
        Ok(live + unfinished)
    }

    /// What a space contains.
    pub async fn space_counts(&self, space: &SpaceName) -> Result<SpaceCounts> {
        let counts = self.counts_of_spaces([space]).await?;
        Ok(counts.into_iter().next().unwrap_or_default())
    }

    /// What each of some spaces contains, in their order.
    pub async fn counts_of_spaces<'s>(
        &self,
        spaces: impl IntoIterator<Item = &'s SpaceName, IntoIter: Send> + Send,
    ) -> Result<Vec<SpaceCounts>> {
        let catalog = &self.shared.catalog;
        let mut counts = Vec::new();
        for space in spaces {
            // Documents move from unfinished to live, so reading in this order misses none.
            let unfinished = catalog.unfinished_in_space(space).await.during("count documents")?;
            let live = catalog.count_in_space(space).await.during("count documents")?;
            counts.push(SpaceCounts { live, unfinished });
        }
        Ok(counts)
    }

    /// Accepts a task that deletes the documents that match a filter. Documents that are added later are not deleted.
    pub async fn delete_where(&self, delete: &BulkDelete, created_by: &Creator) -> Result<Task> {
        self.shared.ingestor.delete_where(delete, created_by).await.during("delete documents")
    }

    /// Accepts a task that deletes a space with all its documents. From the return on, nobody reads the space and nothing is
    /// accepted in it. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, `Conflict` if it is the default space.
    pub async fn delete_space(
        &self,
        space: &SpaceName,
        created_by: &Creator,
        alongside: Vec<Write>,
    ) -> Result<Task> {
        let (ingestor, spaces) = (&self.shared.ingestor, &self.shared.spaces);
        let task = Task::delete_space(ingestor.clock(), space.clone(), created_by.clone());
        let mut writes = ingestor.writes_to_accept(&task).await.during("delete space")?;
        writes.extend(alongside);
        let begun = spaces.begin_delete(space, task.task_id, writes).await;
        ingestor.queue_accepted(&task, begun.is_ok()).await;
        begun.during("delete space").map(|_| task)
    }

    /// Discards what the failed tasks of a deleted space keep for their retries: texts and originals. The task that deletes a
    /// space does this itself.
    pub async fn discard_failed(&self, space: &SpaceName) -> Result<()> {
        self.shared.ingestor.discard_failed(space).await.during("discard failed tasks")
    }
}

/// The records of spaces, for the task that deletes one and for retries.
#[derive(Debug, Clone)]
pub(crate) struct StoredSpaces(pub(crate) Spaces);

#[async_trait]
impl SpaceRecords for StoredSpaces {
    async fn admit(&self, space: &SpaceName) -> lkr_ingest::Result<Option<Vec<Write>>> {
        let directory = self.0.directory().await;
        let directory = directory.map_err(|error| failure("read spaces", error))?;
        let is_deleted = match directory.space(space) {
            Some(space) => space.deleting.is_some(),
            None => directory.is_used(space),
        };
        Ok((!is_deleted).then(|| Spaces::admit(space).into()))
    }

    async fn remove_space(
        &self,
        task: &Task,
        space: &SpaceName,
        end: Vec<Write>,
    ) -> lkr_ingest::Result<bool> {
        let removed = self.0.finish_delete(space, task.task_id, end).await;
        removed.map_err(|error| failure("delete documents", error))
    }
}

fn failure(operation: &'static str, error: lkr_spaces::Error) -> lkr_ingest::Error {
    lkr_ingest::Error::of_records(operation, error.is_retryable(), error)
}
