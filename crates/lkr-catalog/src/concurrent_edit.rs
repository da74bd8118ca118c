//! What is changed of a document by hand, and what of it a replacement under way has to take over.

use std::collections::BTreeMap;

use lkr_domain::{DocId, Document, Metadata};
use lkr_state::{Expect, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{ActiveTask, Catalog, Error, LimitExceeded, Result, TaskInput, catalog::key, check_properties};

/// What to change of a document; `None` keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentChange {
    /// The title. Searches go on finding the document by the words of the title that it was ingested with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The category's name; empty for none. From now on it counts as chosen by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Keys to set, and those with `None` to remove.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Option<String>>,
}

impl DocumentChange {
    /// The document as it shall be.
    pub fn apply(&self, document: &Document) -> Result<Document, LimitExceeded> {
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
        self.amend(&mut after.metadata);
        check_properties(&after.title, &after.source, &after.metadata)?;
        Ok(after)
    }

    fn amend(&self, metadata: &mut Metadata) {
        for (key, value) in &self.metadata {
            match value {
                Some(value) => drop(metadata.insert(key.clone(), value.clone())),
                None => drop(metadata.remove(key)),
            }
        }
    }

    /// Whether what a task makes may be changed so.
    pub(crate) fn check(&self, input: &TaskInput) -> Result<(), LimitExceeded> {
        let mut metadata = input.metadata.clone();
        self.amend(&mut metadata);
        let title = self.title.as_ref().unwrap_or(&input.title);
        let source = self.source.as_ref().unwrap_or(&input.source);
        check_properties(title, source, &metadata)
    }

    /// This change and then `later`, as one.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let mut both = self.clone();
        let Self { title, source, category, metadata } = later.clone();
        both.title = title.or(both.title);
        both.source = source.or(both.source);
        both.category = category.or(both.category);
        both.metadata.extend(metadata);
        both
    }
}

/// What was changed of a live document after its replacement was accepted: the replacement takes it over when it
/// becomes visible, because it was asked for later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConcurrentEdit {
    /// The change.
    pub change: DocumentChange,
    /// The version of its record; none where there is none yet.
    version: Option<u64>,
}

impl ConcurrentEdit {
    pub(crate) fn expected(&self) -> Expect {
        self.version.map_or(Expect::Absent, Expect::Version)
    }

    /// The write that takes it away, or makes sure that there still is none.
    pub(crate) fn end(&self, active: ActiveTask, revision: u64) -> Write {
        let key = key::amendment(active.subject.record_id(), revision);
        match self.version {
            Some(version) => Write::delete(key, Expect::Version(version)),
            None => Write::check(key, Expect::Absent),
        }
    }

    /// The write that adds `later` to it.
    pub(crate) fn add(&self, doc_id: DocId, revision: u64, later: &DocumentChange) -> Result<Write> {
        let change = serde_json::to_vec(&self.change.then(later));
        let change = change.map_err(|e| Error::corrupt("write amendment", e))?;
        Ok(Write::put(key::amendment(doc_id, revision), self.expected(), change))
    }
}

impl Catalog {
    /// What a replacement that makes `revision` has to take over.
    pub(crate) async fn amendment(&self, doc_id: DocId, revision: u64) -> Result<ConcurrentEdit> {
        let record = self.state.get(&key::amendment(doc_id, revision)).await?;
        let Some(record) = record else { return Ok(ConcurrentEdit::default()) };
        let change =
            serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read amendment", e))?;
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
    fn the_later_change_wins_where_both_say_something() {
        let first = change(Some("a"), &[("x", Some("1")), ("y", None)]);
        let later = change(None, &[("x", None), ("z", Some("3"))]);
        assert_eq!(first.then(&later), change(Some("a"), &[("x", None), ("y", None), ("z", Some("3"))]));
        assert_eq!(first.then(&change(Some("b"), &[])).title.as_deref(), Some("b"));
    }
}
