//! Manual changes to a document, and those that a replacement being ingested must adopt.

use std::collections::BTreeMap;

use lkr_domain::{DocId, Document, Metadata, SpaceName};
use lkr_state::{Expect, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{
    ActiveTask, Catalog, Error, LimitExceeded, Result, TaskInput, check_line, check_properties, key,
};

/// A manual change to a document. `None` keeps a property.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentChange {
    /// The title. Searches still find the document by the words of the title that it was ingested with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The space to which the document moves. A replacement goes where the live document is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<SpaceName>,
    /// The category's name; empty for none. The change marks the category as chosen by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Keys to set; those with `None` are removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Option<String>>,
}

impl DocumentChange {
    /// The changed document.
    pub fn apply(&self, document: &Document) -> Result<Document, LimitExceeded> {
        let mut after = document.clone();
        self.check_lines()?;
        if let Some(title) = &self.title {
            after.title.clone_from(title);
        }
        if let Some(source) = &self.source {
            after.source.clone_from(source);
        }
        if let Some(space) = &self.space {
            after.space.clone_from(space);
        }
        if let Some(category) = &self.category {
            after.category.clone_from(category);
            after.category_by_hand = true;
        }
        self.apply_to_metadata(&mut after.metadata);
        check_properties(&after.title, &after.source, &after.metadata)?;
        Ok(after)
    }

    /// Only the new values: a stored title or source above the limit does not block other changes.
    fn check_lines(&self) -> Result<(), LimitExceeded> {
        check_line("title", self.title.as_deref().unwrap_or_default())?;
        check_line("source", self.source.as_deref().unwrap_or_default())
    }

    fn apply_to_metadata(&self, metadata: &mut Metadata) {
        for (key, value) in &self.metadata {
            match value {
                Some(value) => drop(metadata.insert(key.clone(), value.clone())),
                None => drop(metadata.remove(key)),
            }
        }
    }

    /// Checks that the document of a task may be changed like this.
    pub(crate) fn check(&self, input: &TaskInput) -> Result<(), LimitExceeded> {
        let mut metadata = input.metadata.clone();
        self.apply_to_metadata(&mut metadata);
        let title = self.title.as_ref().unwrap_or(&input.title);
        let source = self.source.as_ref().unwrap_or(&input.source);
        check_properties(title, source, &metadata)
    }

    /// This change followed by `later`, as one change.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let mut both = self.clone();
        let Self { title, source, space, category, metadata } = later.clone();
        both.title = title.or(both.title);
        both.source = source.or(both.source);
        both.space = space.or(both.space);
        both.category = category.or(both.category);
        both.metadata.extend(metadata);
        both
    }
}

/// Changes to a live document that were made after its replacement was accepted. The replacement adopts them when it is
/// published, because they were requested later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConcurrentEdit {
    /// The change.
    pub change: DocumentChange,
    /// The version of its record; `None` if there is no record yet.
    version: Option<u64>,
}

impl ConcurrentEdit {
    pub(crate) fn expected(&self) -> Expect {
        self.version.map_or(Expect::Absent, Expect::Version)
    }

    /// The write that removes the record, or checks that there is still none.
    pub(crate) fn end(&self, active: ActiveTask, revision: u64) -> Write {
        let key = key::concurrent_edit(active.subject.record_id(), revision);
        match self.version {
            Some(version) => Write::delete(key, Expect::Version(version)),
            None => Write::check(key, Expect::Absent),
        }
    }

    /// The write that adds `later` to the record.
    pub(crate) fn add(&self, doc_id: DocId, revision: u64, later: &DocumentChange) -> Result<Write> {
        let change = serde_json::to_vec(&self.change.then(later));
        let change = change.map_err(|e| Error::corrupt("write concurrent edit", e))?;
        Ok(Write::put(key::concurrent_edit(doc_id, revision), self.expected(), change))
    }
}

impl Catalog {
    /// The concurrent edit that the replacement with `revision` must adopt.
    pub(crate) async fn concurrent_edit(&self, doc_id: DocId, revision: u64) -> Result<ConcurrentEdit> {
        let record = self.state.get(&key::concurrent_edit(doc_id, revision)).await?;
        let Some(record) = record else { return Ok(ConcurrentEdit::default()) };
        let change =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read concurrent edit", e))?;
        Ok(ConcurrentEdit { change, version: Some(record.version) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(title: Option<&str>, metadata: &[(&str, Option<&str>)]) -> DocumentChange {
        let owned = |(key, value): &(&str, Option<&str>)| ((*key).to_owned(), value.map(str::to_owned));
        DocumentChange {
            title: title.map(str::to_owned),
            metadata: metadata.iter().map(owned).collect(),
            ..DocumentChange::default()
        }
    }

    #[test]
    fn changes_in_sequence_later_value_wins() {
        let first = change(Some("a"), &[("x", Some("1")), ("y", None)]);
        let later = change(None, &[("x", None), ("z", Some("3"))]);
        assert_eq!(first.then(&later), change(Some("a"), &[("x", None), ("y", None), ("z", Some("3"))]));
        assert_eq!(first.then(&change(Some("b"), &[])).title.as_deref(), Some("b"));
    }
}
