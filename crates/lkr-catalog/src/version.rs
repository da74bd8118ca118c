//! The version of the stored format. A store of a later version is refused, because it might be misread.

use lkr_domain::{Document, Fingerprint};
use lkr_state::{Expect, Record, StateStoreExt, Write};

use crate::{
    Catalog, Error, ErrorKind, Result, Stored, Task, TaskLists, catalog::read_document, document,
    finish::reindex, key, space_index, task_index,
};

/// The version that this release writes. Version 1 had no replacements and no fingerprints, version 2 no
/// spaces, version 3 no indexes of tasks, version 4 none of them by status, and no short records of ended tasks and audit entries.
pub const STORE_VERSION: u64 = 5;

/// The number of records that are indexed at a time.
const PAGE: usize = 500;

/// The first version whose points have their space and other fields of documents as tags.
pub const FIRST_WITH_SPACES: u64 = 3;

/// The first version whose documents have fingerprints.
const FIRST_WITH_FINGERPRINTS: u64 = 2;

impl Catalog {
    /// The version of the store.
    pub async fn version(&self) -> Result<u64> {
        read_version(self.state.get(key::VERSION).await?.as_ref())
    }

    /// Upgrades the store to this version. Returns the earlier version, if it was another.
    ///
    /// # Errors
    /// `Refused` if the store has a later version, `Conflict` if another process upgrades it meanwhile.
    pub async fn upgrade(&self) -> Result<Option<u64>> {
        let record = self.state.get(key::VERSION).await?;
        let found = read_version(record.as_ref())?;
        if found > STORE_VERSION {
            let reason = format!(
                "the store has version {found}, written by a later lkr; this program reads versions up to \
                 {STORE_VERSION}"
            );
            return Err(Error::new(ErrorKind::Refused, "open store", reason));
        }
        if found == STORE_VERSION {
            return Ok(None);
        }
        // Adding the entries again after a crash changes nothing.
        if found < FIRST_WITH_SPACES {
            self.index_spaces().await?;
        }
        let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
        self.index_tasks(expect).await?;
        let mut writes = vec![Write::put(key::VERSION, expect, STORE_VERSION.to_string())];
        if found < FIRST_WITH_FINGERPRINTS {
            writes.push(Write::put(key::WITHOUT_FINGERPRINTS, Expect::Any, Vec::new()));
        }
        self.state.apply(writes).await?;
        Ok(Some(found))
    }

    /// Adds all live documents to the index of spaces, which version 2 lacks.
    async fn index_spaces(&self) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.stored_documents(after, PAGE).await?;
            let entries: Vec<Write> = page.iter().map(|stored| space_index::put(&stored.value)).collect();
            if !entries.is_empty() {
                self.state.apply(entries).await?;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.value.doc_id),
                _ => return Ok(()),
            }
        }
    }

    /// Adds all tasks to their indexes, which version 3 lacks, and version 4 those by status. The entries that have other keys in
    /// version 4 are removed. `expect` is the version of the store's version: once another process has upgraded the store, tasks
    /// change, and entries of their earlier statuses must not be added.
    ///
    /// # Errors
    /// `Conflict` if another process upgraded the store meanwhile.
    async fn index_tasks(&self, expect: Expect) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.tasks(&TaskLists::All, |_| true, after, PAGE).await?;
            let mut entries: Vec<Write> = page.items.iter().flat_map(task_index::put).collect();
            if !entries.is_empty() {
                entries.push(Write::check(key::VERSION, expect));
                self.state.apply(entries).await?;
            }
            let earlier: Vec<Write> = page.items.iter().flat_map(delete_entries_of_version_4).collect();
            if !earlier.is_empty() {
                self.state.apply(earlier).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Whether some documents may lack fingerprints because an earlier version ingested them.
    pub async fn lacks_fingerprints(&self) -> Result<bool> {
        Ok(self.state.get(key::WITHOUT_FINGERPRINTS).await?.is_some())
    }

    /// Records that all documents have fingerprints.
    pub async fn mark_fingerprinted(&self) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(key::WITHOUT_FINGERPRINTS, Expect::Any)]).await?)
    }

    /// Stores the fingerprint of a live document and adds it to the text indexes.
    ///
    /// # Errors
    /// `Conflict` if the document changed since it was read.
    pub async fn fingerprint(&self, before: &Stored<Document>, fingerprint: Fingerprint) -> Result<()> {
        let after = Document { fingerprint: Some(fingerprint), ..before.value.clone() };
        let put = Write::put(
            key::document(after.doc_id),
            Expect::Version(before.version),
            document::encode(&after)?,
        );
        let writes = std::iter::once(put).chain(reindex(None, &after));
        Ok(self.state.apply(writes.collect()).await?)
    }

    /// Up to `limit` live documents with the versions of their records, beyond `after`.
    pub async fn stored_documents(
        &self,
        after: Option<lkr_domain::DocId>,
        limit: usize,
    ) -> Result<Vec<Stored<Document>>> {
        let after = after.map(key::document);
        let order = lkr_state::ScanOrder::Ascending;
        let records = self.state.scan(key::DOCUMENTS, after.as_deref(), order, limit).await?;
        let read = |(key, record): &(String, Record)| {
            let doc_id = key.strip_prefix(key::DOCUMENTS).unwrap_or_default().parse();
            read_document(doc_id.map_err(|e| Error::corrupt("read document key", e))?, record)
        };
        records.iter().map(read).collect()
    }
}

/// The writes that remove the entries of a task that have other keys in version 4.
fn delete_entries_of_version_4(task: &Task) -> impl Iterator<Item = Write> {
    let account = Some(&task.created_by.id).filter(|id| !id.is_empty());
    account.into_iter().chain(&task.key).map(move |id| {
        let key = format!("{}{}", key::tasks_asked_by_in_version_4(id), task.task_id);
        Write::delete(key, Expect::Any)
    })
}

/// Reads the version. Stores of version 1 have no such record.
fn read_version(record: Option<&Record>) -> Result<u64> {
    let Some(record) = record else { return Ok(1) };
    let text = std::str::from_utf8(&record.value);
    let version = text.ok().and_then(|text| text.parse().ok());
    version.ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "read the store's version", "the version is not a number")
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use lkr_domain::{Creator, DocId, SpaceName};
    use lkr_state::MemoryState;

    use super::*;
    use crate::{Acceptance, TaskInput};

    #[tokio::test]
    async fn upgrade_gives_the_entries_of_tasks_their_present_keys() {
        let catalog = Catalog::new(Arc::new(MemoryState::default()));
        let created_by = Creator { name: "anna".to_owned(), id: "17".to_owned() };
        let space = SpaceName::default();
        let task = Task::ingest(catalog.clock(), DocId::new(), space, created_by, TaskInput::default());
        catalog.accept(&[Acceptance { task: task.clone(), existing: None }], Vec::new()).await.unwrap();
        let earlier = format!("{}{}", key::tasks_asked_by_in_version_4("17"), task.task_id);
        let mut writes: Vec<Write> = task_index::delete(&task).collect();
        writes.push(Write::put(key::VERSION, Expect::Absent, "4"));
        writes.push(Write::put(earlier.clone(), Expect::Absent, Vec::new()));
        catalog.state.apply(writes).await.unwrap();

        assert_eq!(catalog.upgrade().await.unwrap(), Some(4));
        assert!(catalog.record(&earlier).await.unwrap().is_none());
        assert!(catalog.is_task_indexed(&task).await.unwrap());
        let own = TaskLists::Of { spaces: BTreeSet::new(), asked_by: Some("17".to_owned()) };
        let listed = catalog.tasks(&own, |_| true, None, 10).await.unwrap();
        assert_eq!(listed.items, [task]);
        assert_eq!((catalog.upgrade().await.unwrap(), catalog.version().await.unwrap()), (None, 5));
    }
}
