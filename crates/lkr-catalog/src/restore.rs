//! The steps that bring back records which the state store has lost.

use lkr_domain::{DocId, Document};
use lkr_state::{Expect, Record, StateStoreExt, Write};

use crate::{Catalog, Garbage, Result, STORE_VERSION, Stored, document, finish::reindex, key};

impl Catalog {
    /// Makes a document live whose record was lost, or was lost in part: `before` is an older record of it. If its points
    /// have no dense vectors, it is recorded for [`unembedded`](Self::unembedded).
    ///
    /// # Errors
    /// `Conflict` if the record changed since it was read.
    pub async fn restore(
        &self,
        before: Option<&Stored<Document>>,
        document: &Document,
        has_dense: bool,
    ) -> Result<()> {
        let expect = before.map_or(Expect::Absent, |before| Expect::Version(before.version));
        let mut writes =
            vec![Write::put(key::document(document.doc_id), expect, document::encode(document)?)];
        writes.extend(Self::invalidate_answers_of(&document.space));
        writes.extend(before.and_then(|before| replaced(&before.value, document)));
        writes.extend(reindex(before.map(|before| &before.value), document));
        if !has_dense {
            writes.push(Write::put(key::unembedded(document.doc_id), Expect::Any, Vec::new()));
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Whether a revision waits to be collected.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn is_garbage(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        Ok(self.state.get(&key::garbage(doc_id, revision)).await?.is_some())
    }

    /// Whether the store was ever opened. One that was, and has no version, has lost its records.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn has_version(&self) -> Result<bool> {
        Ok(self.state.get(key::VERSION).await?.is_some())
    }

    /// Raises the counters of changes above all values that they can have had, so that no answer which was computed before
    /// records were lost counts as fresh.
    ///
    /// # Errors
    /// `Conflict` if a counter changes meanwhile.
    pub async fn raise_generations(&self) -> Result<()> {
        let mut writes = Vec::new();
        for counter in [key::GENERATION, key::CORPUS_GENERATION] {
            let record = self.state.get(counter).await?;
            let expect = record.as_ref().map_or(Expect::Absent, |record| Expect::Version(record.version));
            // Counters grow by one with each change, so none reaches the microseconds since 1970.
            let micros = u64::try_from(self.now().unix_timestamp_nanos() / 1_000).unwrap_or_default();
            let raised = record.as_ref().map_or(0, Record::as_counter).saturating_add(1).max(micros);
            writes.push(Write::put(counter, expect, raised.to_string()));
        }
        Ok(self.state.apply(writes).await?)
    }

    /// Gives a store that lost its records the present version, after everything is restored. `alongside` is written in
    /// the same step.
    ///
    /// # Errors
    /// `Conflict` if the store has a version.
    pub async fn mark_restored(&self, alongside: Vec<Write>) -> Result<()> {
        let version = Write::put(key::VERSION, Expect::Absent, STORE_VERSION.to_string());
        Ok(self.state.apply(std::iter::once(version).chain(alongside).collect()).await?)
    }
}

/// The garbage that a newer revision makes of the one before; its original stays if both have the same.
fn replaced(before: &Document, after: &Document) -> Option<Write> {
    let garbage = Some(Garbage::of_document(before)).filter(|_| before.revision != after.revision)?;
    let kept = after.original.as_ref().map(|original| &original.path);
    let original = garbage.original.filter(|path| Some(path) != kept);
    Some(Garbage { original, ..garbage }.put())
}
