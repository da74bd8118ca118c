//! Changing the properties of a live document: its record, and the tags of its points.

use std::fmt;

use lkr_catalog::{DocumentChange, DocumentState, LimitExceeded, tags_of};
use lkr_domain::{DocId, Document};
use lkr_state::Write;
use tokio::sync::Mutex;

use crate::{
    Error, ErrorKind, Ports, Result,
    pending_changes::{PendingChange, PendingChanges},
};

/// Changes a live document on behalf of a person.
///
/// # Errors
/// `Invalid` if the document, or its unfinished replacement, would exceed a limit.
pub(crate) async fn change_by_hand(
    ports: &Ports,
    changes: &PendingChanges,
    doc_id: DocId,
    change: &DocumentChange,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    let apply = |document: &Document| apply_by_hand(change, document).map(Some);
    let edit = Edit { ports, changes, doc_id, apply, by_hand: Some(change), alongside };
    Ok(edit.run().await?.map(|(document, _)| document))
}

/// The document after a change by a person.
///
/// # Errors
/// `Invalid` if it would exceed a limit.
pub(crate) fn apply_by_hand(change: &DocumentChange, document: &Document) -> Result<Document> {
    change.apply(document).map_err(|exceeded| too_much("after the change", exceeded))
}

/// Checks that an unfinished replacement may be changed like this, too.
pub(crate) fn check_replacement(state: &DocumentState, change: &DocumentChange) -> Result<()> {
    let when = "in the unfinished replacement, after the change";
    state.check_concurrent_edit(change).map_err(|exceeded| too_much(when, exceeded))
}

fn too_much(when: &'static str, exceeded: LimitExceeded) -> Error {
    Error::new(ErrorKind::Invalid, "change document", ExceededByChange { when, exceeded })
}

/// A limit that a change would exceed, as the cause of an error.
#[derive(Debug)]
struct ExceededByChange {
    when: &'static str,
    exceeded: LimitExceeded,
}

impl fmt::Display for ExceededByChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.when, self.exceeded)
    }
}

impl std::error::Error for ExceededByChange {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.exceeded)
    }
}

/// Sets the category that was found for a live document, unless a person chose one. Returns whether it changed.
pub(crate) async fn set_category(
    ports: &Ports,
    changes: &PendingChanges,
    doc_id: DocId,
    category: &str,
) -> Result<bool> {
    let apply = |document: &Document| {
        let differs = !document.category_by_hand && document.category != category;
        Ok(differs.then(|| Document { category: category.to_owned(), ..document.clone() }))
    };
    let edit = Edit { ports, changes, doc_id, apply, by_hand: None, alongside: Vec::new() };
    Ok(edit.run().await?.is_some_and(|(_, is_changed)| is_changed))
}

/// One change of a live document.
///
/// The tags are set first, then the record is written in one step, so that every search after the change shows it. If the
/// record changed in between, the step fails and the change is repeated on the new record; the last writer has set the tags
/// just before. A change that fails reverts its tags. If the process ends in between, the stored note lets the next start
/// do so.
struct Edit<'a, A> {
    ports: &'a Ports,
    changes: &'a PendingChanges,
    doc_id: DocId,
    /// The changed document; `None` to leave it as it is.
    apply: A,
    /// The change, if a person asked for it: it also applies to an unfinished replacement, which was accepted before.
    by_hand: Option<&'a DocumentChange>,
    alongside: Vec<Write>,
}

impl<'a, A> Edit<'a, A>
where
    A: Fn(&Document) -> Result<Option<Document>>,
{
    /// The document after the change, and whether it changed; `None` if it is not live.
    async fn run(self) -> Result<Option<(Document, bool)>> {
        let _turn = self.changes.locks.lock(self.doc_id).await;
        let pending = Mutex::new(None);
        let attempt = || async { self.attempt(&mut *pending.lock().await).await };
        let changed = self.ports.catalog.retry_on_conflict("change document", attempt).await;
        match pending.into_inner() {
            Some(pending) if matches!(changed, Ok(Some((_, true)))) => pending.finish(),
            Some(pending) => {
                if let Err(error) = pending.revert().await {
                    let doc_id = self.doc_id;
                    tracing::warn!(%doc_id, %error, "cannot revert the tags of a failed change; the janitor will retry");
                }
            }
            None => {}
        }
        changed
    }

    async fn attempt(&self, pending: &mut Option<PendingChange<'a>>) -> Result<Option<(Document, bool)>> {
        let state = self.ports.catalog.document_state(self.doc_id).await?;
        let Some(before) = &state.document else { return Ok(None) };
        let Some(mut after) = (self.apply)(&before.value)? else {
            return Ok(Some((before.value.clone(), false)));
        };
        let concurrent = self.by_hand.filter(|_| state.may_be_replaced());
        if let Some(change) = concurrent {
            check_replacement(&state, change)?;
        }
        if after == before.value && concurrent.is_none() {
            return Ok(Some((after, false)));
        }
        after.updated_at = self.ports.catalog.now();
        if pending.is_some() || tags_of(&after) != tags_of(&before.value) {
            if pending.is_none() {
                *pending = Some(self.changes.begin(self.doc_id).await?);
            }
            self.changes.set_tags(&after).await?;
        }
        let note = pending.as_ref().map(|pending| &pending.note);
        self.ports.catalog.change(&state, &after, concurrent, note, self.alongside.clone()).await?;
        Ok(Some((after, true)))
    }
}
