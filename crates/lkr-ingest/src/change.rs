//! Changes of what is said of a live document: its record, and the tags that its points are filtered by.

use std::collections::BTreeMap;

use lkr_catalog::{ChangeNote, Stored, tags_of};
use lkr_domain::{DocId, Document, MAX_METADATA_KEYS, MAX_PROPERTIES_BYTES, RESERVED_METADATA};
use lkr_state::Write;
use lkr_vectors::{Condition, Filter};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Result,
    ingestor::{CONTENDED_TRIES, Inner},
    shelves::set_tags_everywhere,
};

/// What to change of a document; `None` keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentChange {
    /// The title. Searches go on finding the document by the words of the title that it was ingested with.
    pub title: Option<String>,
    /// The source.
    pub source: Option<String>,
    /// The category's name; empty for none. From now on it counts as chosen by a person.
    pub category: Option<String>,
    /// Keys to set, and those with `None` to remove.
    pub metadata: BTreeMap<String, Option<String>>,
}

impl DocumentChange {
    /// The document as it shall be.
    fn apply(&self, document: &Document) -> Result<Document> {
        let mut after = document.clone();
        if let Some(title) = &self.title {
            after.title.clone_from(title);
        }
        if let Some(source) = &self.source {
            after.source.clone_from(source);
        }
        if let Some(category) = &self.category {
            after.category.clone_from(category);
            after.category_by_hand = true;
        }
        for (key, value) in &self.metadata {
            match value {
                Some(value) => drop(after.metadata.insert(key.clone(), value.clone())),
                None => drop(after.metadata.remove(key)),
            }
        }
        check(&after)?;
        Ok(after)
    }
}

fn check(document: &Document) -> Result<()> {
    let Document { title, source, metadata, .. } = document;
    let too_much = |reason: String| Err(Error::new(ErrorKind::Invalid, "change document", reason));
    let keys = metadata.keys().filter(|key| !RESERVED_METADATA.contains(&key.as_str())).count();
    if keys > MAX_METADATA_KEYS {
        return too_much(format!("metadata would have {keys} keys, at most {MAX_METADATA_KEYS} are allowed"));
    }
    let bytes = serde_json::to_vec(&(title, source, metadata)).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_PROPERTIES_BYTES {
        return too_much(format!(
            "title, source and metadata would have {bytes} bytes of JSON, at most {MAX_PROPERTIES_BYTES} are allowed"
        ));
    }
    Ok(())
}

/// Changes a live document as a person asks for it.
pub(crate) async fn by_hand(
    inner: &Inner,
    doc_id: DocId,
    change: &DocumentChange,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    amend(inner, doc_id, |document| change.apply(document).map(Some), alongside).await
}

/// Gives a live document the category that was found for it, unless a person chose one; answers whether that changed
/// it.
pub(crate) async fn categorise(inner: &Inner, doc_id: DocId, category: &str) -> Result<bool> {
    let mut changed = false;
    let choose = |document: &Document| {
        changed = !document.category_by_hand && document.category != category;
        Ok(changed.then(|| Document { category: category.to_owned(), ..document.clone() }))
    };
    let document = amend(inner, doc_id, choose, Vec::new()).await?;
    Ok(changed && document.is_some())
}

/// Changes the record of a live document to what `change` makes of it, and the tags of its points with it; answers how
/// it stands then.
///
/// The tags are set first and the record follows in one step, so that whatever is searched after this answers shows
/// the change. What overtakes it makes that step fail, and all is done anew upon what is there then; whoever comes
/// last has set the tags right before. A crash in between leaves a note, by which the next start sets the tags that
/// the record tells.
async fn amend(
    inner: &Inner,
    doc_id: DocId,
    mut change: impl FnMut(&Document) -> Result<Option<Document>>,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    let catalog = &inner.ports.catalog;
    let mut note: Option<ChangeNote> = None;
    for _ in 0..CONTENDED_TRIES {
        let before = catalog.document(doc_id).await?;
        let after = match &before {
            Some(before) => change(&before.value)?.filter(|after| *after != before.value),
            None => None,
        };
        let (Some(before), Some(mut after)) = (before.clone(), after) else {
            if let Some(note) = note {
                // Tags were set for a change that is not to be: those of the record come back.
                repair(inner, &note).await?;
            }
            return Ok(before.map(|before| before.value));
        };
        after.updated_at = OffsetDateTime::now_utc();
        if tags_of(&after) != tags_of(&before.value) || note.is_some() {
            // Whoever repaired meanwhile has taken the note away.
            catalog.note_change(note.get_or_insert_with(|| ChangeNote::new(doc_id))).await?;
            set_tags(inner, &after).await?;
        }
        match catalog.change(&before, &after, note.as_ref(), alongside.clone()).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            changed => return Ok(changed.map(|()| Some(after))?),
        }
    }
    Err(Error::new(ErrorKind::StoreAway, "change document", "it kept changing meanwhile"))
}

async fn set_tags(inner: &Inner, document: &Document) -> Result<()> {
    let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
    set_tags_everywhere(&*inner.ports.vectors, &filter, &tags_of(document)).await
}

/// After points were copied with the tags that they had when the record was `before`: sets those that the record tells
/// now, should it have changed. A change under way fails and tries anew, because the record is written again.
pub(crate) async fn keep_tags(inner: &Inner, before: &Stored<Document>) -> Result<()> {
    match inner.ports.catalog.touch(before).await {
        Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {
            let note = ChangeNote::new(before.value.doc_id);
            inner.ports.catalog.note_change(&note).await?;
            repair(inner, &note).await
        }
        touched => Ok(touched?),
    }
}

/// How many notes are read at a time.
const BATCH: usize = 100;

/// Ends every change that an earlier process, or a store that was away, left midway.
pub(crate) async fn repair_all(inner: &Inner) -> Result<()> {
    let mut after = None;
    loop {
        let notes = inner.ports.catalog.unfinished_changes(after.as_ref(), BATCH).await?;
        for note in &notes {
            repair(inner, note).await?;
        }
        if notes.len() < BATCH {
            return Ok(());
        }
        after = notes.into_iter().next_back();
    }
}

/// Sets the tags of a document's points to what its record tells, and forgets the note. The record is written as it
/// is, which makes changes that are under way fail and try anew.
async fn repair(inner: &Inner, note: &ChangeNote) -> Result<()> {
    for _ in 0..CONTENDED_TRIES {
        let Some(document) = inner.ports.catalog.document(note.doc_id).await? else {
            return Ok(inner.ports.catalog.forget_change(note).await?);
        };
        set_tags(inner, &document.value).await?;
        match touch(inner, &document, note).await {
            Err(error) if error.kind() == ErrorKind::Overtaken => {}
            touched => return touched,
        }
    }
    // It keeps changing, and the next round will find the note.
    Ok(())
}

async fn touch(inner: &Inner, document: &Stored<Document>, note: &ChangeNote) -> Result<()> {
    Ok(inner.ports.catalog.change(document, &document.value, Some(note), Vec::new()).await?)
}
