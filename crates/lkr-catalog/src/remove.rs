//! Taking documents away.

use lkr_domain::Counts;
use lkr_state::{Expect, Write};

use crate::{
    Catalog, DocumentState, Result, TaskSubject,
    catalog::key,
    finish::unindex,
    garbage::{Garbage, let_go},
};

/// What a delete took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// The live points that went.
    pub counts: Counts,
    /// The originals that nobody has any more.
    pub originals: Vec<String>,
}

impl Catalog {
    /// Takes all there is of a document away: from when this answers, nothing shows it, what is unfinished has ended
    /// as cancelled, and what failed cannot be tried again. `alongside` is written in the same step.
    ///
    /// # Errors
    /// `Conflict` where something of it changed since it was read.
    pub async fn remove(&self, present: &DocumentState, alongside: Vec<Write>) -> Result<Deleted> {
        let DocumentState { doc_id, document, unfinished, held } = present;
        let (mut writes, mut garbage, mut counts) = (alongside, Vec::new(), Counts::default());
        if let Some(document) = document {
            writes.push(Write::delete(key::document(*doc_id), Expect::Version(document.version)));
            writes.push(Write::increment(key::GENERATION));
            writes.extend(unindex(&document.value));
            writes.extend(self.told_deleted(*doc_id));
            garbage.push(Garbage::of_document(&document.value));
            counts = document.value.counts;
        }
        if let Some(unfinished) = unfinished {
            let (task, ended) = self.cancelling(unfinished)?;
            writes.push(unfinished.active.end());
            writes.extend(ended);
            garbage.extend(Garbage::of_task(&task));
        }
        if unfinished.is_none() {
            // A replacement that was accepted meanwhile would bring the document back.
            writes.push(Write::check(key::active(TaskSubject::Document(*doc_id)), Expect::Absent));
        }
        writes.extend(document.iter().map(|document| Garbage::of_document(&document.value).put()));
        writes.extend(held.iter().flat_map(|held| let_go(*doc_id, held)));
        garbage.extend(held.iter().map(|held| Garbage::of_held(*doc_id, held)));
        self.state.apply(writes).await?;
        Ok(Deleted {
            counts,
            originals: garbage.into_iter().filter_map(|garbage| garbage.original).collect(),
        })
    }
}
