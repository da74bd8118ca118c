//! Taking documents away.

use lkr_domain::Counts;
use lkr_state::{Expect, Write};

use crate::{
    Catalog, Present, Result,
    catalog::key,
    finish::unindex,
    trash::{Trash, let_go},
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
    pub async fn remove(&self, present: &Present, alongside: Vec<Write>) -> Result<Deleted> {
        let Present { doc_id, document, unfinished, held } = present;
        let (mut writes, mut trash, mut counts) = (alongside, Vec::new(), Counts::default());
        if let Some(document) = document {
            writes.push(Write::delete(key::document(*doc_id), Expect::Version(document.version)));
            writes.push(Write::increment(key::GENERATION));
            writes.extend(unindex(&document.value));
            writes.extend(self.told_deleted(*doc_id));
            trash.push(Trash::of_document(&document.value));
            counts = document.value.counts;
        }
        if let Some(unfinished) = unfinished {
            let (task, ended) = self.cancelling(unfinished)?;
            writes.push(unfinished.active.end());
            writes.extend(ended);
            trash.push(Trash::of_task(&task));
        }
        if unfinished.is_none() {
            // A replacement that was accepted meanwhile would bring the document back.
            writes.push(Write::check(key::active(*doc_id), Expect::Absent));
        }
        writes.extend(document.iter().map(|document| Trash::of_document(&document.value).put()));
        writes.extend(held.iter().flat_map(|held| let_go(*doc_id, held)));
        trash.extend(held.iter().map(|held| Trash::of_held(*doc_id, held)));
        self.state.apply(writes).await?;
        Ok(Deleted { counts, originals: trash.into_iter().filter_map(|trash| trash.original).collect() })
    }
}
