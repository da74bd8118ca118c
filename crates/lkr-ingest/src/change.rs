//! Changes of what is said of a live document: its record, and the tags that its points are filtered by.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lkr_catalog::{ChangeNote, DocumentChange, Stored, tags_of};
use lkr_domain::{DocId, Document};
use lkr_state::{KeyedMutex, Write};
use lkr_vectors::{Condition, Filter};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Result,
    collection_sets::set_tags_everywhere,
    ingestor::{CONTENDED_TRIES, Inner},
};

/// Changes a live document as a person asks for it.
pub(crate) async fn by_hand(
    inner: &Inner,
    doc_id: DocId,
    change: &DocumentChange,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    let asked = |document: &Document| {
        let after = change.apply(document);
        let excess =
            |excess| Error::new(ErrorKind::Invalid, "change document", format!("after this {excess}"));
        Ok(Some(after.map_err(excess)?))
    };
    amend(inner, doc_id, asked, Some(change), alongside).await
}

/// Gives a live document the category that was found for it, unless a person chose one; answers whether that changed
/// it.
pub(crate) async fn categorise(inner: &Inner, doc_id: DocId, category: &str) -> Result<bool> {
    let mut changed = false;
    let choose = |document: &Document| {
        changed = !document.category_by_hand && document.category != category;
        Ok(changed.then(|| Document { category: category.to_owned(), ..document.clone() }))
    };
    let document = amend(inner, doc_id, choose, None, Vec::new()).await?;
    Ok(changed && document.is_some())
}

/// Changes the record of a live document to what `change` makes of it, and the tags of its points with it; answers how
/// it stands then. What a person asked for is in force after a replacement too that is under way, because that was
/// accepted before.
///
/// The tags are set first and the record follows in one step, so that whatever is searched after this answers shows
/// the change. What overtakes it makes that step fail, and all is done anew upon what is there then; whoever comes
/// last has set the tags right before. What comes to nothing takes its tags back, and a crash in between leaves a
/// note, by which the next start does that.
async fn amend(
    inner: &Inner,
    doc_id: DocId,
    change: impl FnMut(&Document) -> Result<Option<Document>>,
    asked: Option<&DocumentChange>,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    let _turn = inner.changes.turns.lock(doc_id).await;
    let mut pending = None;
    let amended = try_amend(inner, doc_id, change, asked, alongside, &mut pending).await;
    if let Some(pending) = pending.filter(|pending: &Pending<'_>| !pending.done)
        && let Err(error) = pending.take_back().await
    {
        tracing::warn!(%doc_id, %error, "tags of a change that came to nothing will be taken back later");
    }
    amended
}

/// Tries until nothing overtakes it. A `pending` change that is left has set tags and not the record.
async fn try_amend<'a>(
    inner: &'a Inner,
    doc_id: DocId,
    mut change: impl FnMut(&Document) -> Result<Option<Document>>,
    asked: Option<&DocumentChange>,
    alongside: Vec<Write>,
    pending: &mut Option<Pending<'a>>,
) -> Result<Option<Document>> {
    let catalog = &inner.ports.catalog;
    for _ in 0..CONTENDED_TRIES {
        let present = catalog.document_state(doc_id).await?;
        let Some(before) = &present.document else { return Ok(None) };
        let Some(mut after) = change(&before.value)? else { return Ok(Some(before.value.clone())) };
        let amends = asked.filter(|_| present.may_be_replaced());
        if let Some(change) = amends {
            let reason = |excess| format!("in the replacement that is under way, after this {excess}");
            let refused = |excess| Error::new(ErrorKind::Invalid, "change document", reason(excess));
            present.check_concurrent_edit(change).map_err(refused)?;
        }
        if after == before.value && amends.is_none() {
            return Ok(Some(after));
        }
        after.updated_at = OffsetDateTime::now_utc();
        if pending.is_some() || tags_of(&after) != tags_of(&before.value) {
            if pending.is_none() {
                *pending = Some(Pending::begin(inner, doc_id).await?);
            }
            set_tags(inner, &after).await?;
        }
        let note = pending.as_ref().map(|pending| &pending.note);
        match catalog.change(&present, &after, amends, note, alongside.clone()).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            changed => {
                changed?;
                pending.iter_mut().for_each(|pending| pending.done = true);
                return Ok(Some(after));
            }
        }
    }
    Err(Error::new(ErrorKind::StoreAway, "write record", "it kept changing meanwhile"))
}

/// The changes that this process began and did not end.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    begun: Mutex<Begun>,
    /// Those of one document go one after another.
    turns: KeyedMutex,
}

#[derive(Debug, Default)]
struct Begun {
    /// Somebody is at these, and nobody else ends them.
    under_way: HashSet<ChangeNote>,
    /// Nobody is at these any more.
    left: HashSet<ChangeNote>,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change under way: its note is stored. Where it is dropped before it is done, the janitor ends it.
pub(crate) struct Pending<'a> {
    note: ChangeNote,
    inner: &'a Inner,
    done: bool,
}

impl<'a> Pending<'a> {
    /// Notes that the tags of a document's points may soon differ from what its record tells.
    pub(crate) async fn begin(inner: &'a Inner, doc_id: DocId) -> Result<Self> {
        let pending = Self { note: ChangeNote::new(doc_id), inner, done: false };
        inner.changes.lock().under_way.insert(pending.note.clone());
        inner.ports.catalog.note_change(&pending.note).await?;
        Ok(pending)
    }

    /// After points were stored with the tags that they had when the record was `before`: sees to it that they have
    /// those that the record tells. A change under way fails and tries anew, because the record is written again.
    pub(crate) async fn confirm(mut self, before: &Stored<Document>) -> Result<()> {
        match self.inner.ports.catalog.confirm(before, &self.note).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            confirmed => {
                confirmed?;
                self.done = true;
                return Ok(());
            }
        }
        self.take_back().await
    }

    /// Sets the tags that the record tells in place of those that were set for it.
    async fn take_back(mut self) -> Result<()> {
        self.done = repair(self.inner, &self.note).await?;
        Ok(())
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut begun = self.inner.changes.lock();
        begun.under_way.remove(&self.note);
        if !self.done {
            begun.left.insert(self.note.clone());
            self.inner.garbage.notify_one();
        }
    }
}

async fn set_tags(inner: &Inner, document: &Document) -> Result<()> {
    let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
    set_tags_everywhere(&*inner.ports.vectors, &filter, &tags_of(document)).await
}

/// How many notes are read at a time.
const BATCH: usize = 100;

/// After this time a change of another process is not under way any more.
const ABANDONED: Duration = Duration::from_secs(600);

/// Ends every change that was left midway: by this process, because a store was away, or by an earlier one.
pub(crate) async fn repair_all(inner: &Inner) -> Result<()> {
    let left = inner.changes.lock().left.clone();
    let mut stays = HashSet::new();
    let mut after = None;
    loop {
        let notes = inner.ports.catalog.unfinished_changes(after.as_ref(), BATCH).await?;
        for note in notes.iter().filter(|note| left.contains(note) || is_abandoned(inner, note)) {
            // One that cannot be repaired keeps no other from being.
            let repaired = repair(inner, note).await.unwrap_or_else(|error| {
                tracing::warn!(doc_id = %note.doc_id, %error, "tags could not be set anew; it will be tried again");
                false
            });
            if !repaired {
                stays.insert(note.clone());
            }
        }
        if notes.len() < BATCH {
            // What is not there any more need not be remembered.
            inner.changes.lock().left.retain(|note| !left.contains(note) || stays.contains(note));
            return Ok(());
        }
        after = notes.into_iter().next_back();
    }
}

/// Whether nobody is at a change any more that this process did not leave. What is under way here is known; what was
/// begun before this process was is of one that has ended, and of those beside it the age must tell.
fn is_abandoned(inner: &Inner, note: &ChangeNote) -> bool {
    let made_at = note.made_at();
    !inner.changes.lock().under_way.contains(note)
        && (made_at <= inner.started || made_at + ABANDONED < OffsetDateTime::now_utc())
}

/// Sets the tags of a document's points to what its record tells, and forgets the note. The record is written as it
/// is, which makes changes that are under way fail and try anew; what searches showed meanwhile is cached no longer.
/// False where the document kept changing, and the note is still there.
async fn repair(inner: &Inner, note: &ChangeNote) -> Result<bool> {
    for _ in 0..CONTENDED_TRIES {
        let present = inner.ports.catalog.document_state(note.doc_id).await?;
        let Some(document) = &present.document else {
            inner.ports.catalog.forget_change(note).await?;
            return Ok(true);
        };
        set_tags(inner, &document.value).await?;
        match inner.ports.catalog.change(&present, &document.value, None, Some(note), Vec::new()).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            repaired => return Ok(repaired.map(|()| true)?),
        }
    }
    Ok(false)
}
