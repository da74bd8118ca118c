//! The version of the stored format. A store of a later version is refused, because it might be misread.

use lkr_domain::{Document, Fingerprint};
use lkr_state::{Expect, Record, StateStoreExt, Write};

use crate::{
    Catalog, Error, ErrorKind, Result, Stored, TaskLists, catalog::read_document, document, finish::reindex,
    key, space_index, task_index,
};

/// The version that this release writes. Version 1 had no replacements and no fingerprints, version 2 no
/// spaces, version 3 no indexes of tasks.
pub const STORE_VERSION: u64 = 4;

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
    /// `Refused` if the store has a later version.
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
        self.index_tasks().await?;
        let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
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

    /// Adds all tasks to their indexes, which version 3 lacks.
    async fn index_tasks(&self) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.tasks(&TaskLists::All, |_| true, after, PAGE).await?;
            let entries: Vec<Write> = page.items.iter().flat_map(task_index::put).collect();
            if !entries.is_empty() {
                self.state.apply(entries).await?;
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

/// Reads the version. Stores of version 1 have no such record.
fn read_version(record: Option<&Record>) -> Result<u64> {
    let Some(record) = record else { return Ok(1) };
    let text = std::str::from_utf8(&record.value);
    let version = text.ok().and_then(|text| text.parse().ok());
    version.ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "read the store's version", "the version is not a number")
    })
}
