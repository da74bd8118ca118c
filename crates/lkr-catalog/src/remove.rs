//! Deleting documents.

use lkr_domain::Counts;
use lkr_state::{Expect, Write};

use crate::{
    ActiveTask, Catalog, DocumentState, PartialResult, Result, TaskSubject,
    finish::unindex,
    garbage::{Garbage, discard_failed_attempt},
    key,
};

/// What a delete removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// The live points that were removed.
    pub counts: Counts,
    /// The paths of originals that became garbage.
    pub originals: Vec<String>,
}

impl Catalog {
    /// Deletes a document with everything that belongs to it. Once this returns, nothing shows the document, its
    /// unfinished task has ended as cancelled, and its failed tasks cannot be retried. `alongside` is written in the
    /// same step.
    ///
    /// # Errors
    /// `Conflict` if the document's state changed since it was read.
    pub async fn remove(&self, state: &DocumentState, alongside: Vec<Write>) -> Result<Deleted> {
        let DocumentState { doc_id, document, unfinished, failed_attempts } = state;
        let (mut writes, mut garbage, mut counts) = (alongside, Vec::new(), Counts::default());
        if let Some(document) = document {
            writes.push(Write::delete(key::document(*doc_id), Expect::Version(document.version)));
            writes.extend(Self::invalidate_answers_of(&document.value.space));
            writes.extend(unindex(&document.value));
            writes.extend(self.document_deleted_events(*doc_id, &document.value.space));
            garbage.push(Garbage::of_document(&document.value));
            counts = document.value.counts;
        }
        if let Some(unfinished) = unfinished {
            let (task, ended) = self.cancel_writes(unfinished)?;
            writes.push(unfinished.active.end());
            writes.extend(ended);
            garbage.extend(Garbage::of_task(&task));
        }
        if unfinished.is_none() {
            // A replacement that was accepted meanwhile would restore the document.
            writes.push(Write::check(key::active(TaskSubject::Document(*doc_id)), Expect::Absent));
        }
        writes.extend(document.iter().map(|document| Garbage::of_document(&document.value).put()));
        writes.extend(failed_attempts.iter().flat_map(|attempt| discard_failed_attempt(*doc_id, attempt)));
        garbage.extend(failed_attempts.iter().map(|attempt| Garbage::of_failed_attempt(*doc_id, attempt)));
        self.state.apply(writes).await?;
        Ok(Deleted {
            counts,
            originals: garbage.into_iter().filter_map(|garbage| garbage.original).collect(),
        })
    }

    /// Like [`remove`](Self::remove), for a live document that an unfinished task deletes. The step counts the document in
    /// the partial result of the task.
    ///
    /// # Errors
    /// `Conflict` also if the task ended or its partial result changed since they were read.
    pub async fn remove_by_task(
        &self,
        active: ActiveTask,
        partial: &PartialResult,
        state: &DocumentState,
        alongside: Vec<Write>,
    ) -> Result<Deleted> {
        let counts = state.document.as_ref().map(|document| document.value.counts).unwrap_or_default();
        let mut writes = vec![active.check(), partial.add(active.task_id, counts)?];
        writes.extend(alongside);
        self.remove(state, writes).await
    }
}
