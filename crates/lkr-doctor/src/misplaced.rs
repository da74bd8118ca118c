//! Records whose keys may be damaged: a record's checksum tells nothing of its key.

use lkr_catalog::{Entry, Result};
use lkr_domain::{DocId, Document};
use lkr_vectors::{Collection, Condition, Filter};

use crate::{Doctor, RepairAction, layers};

/// How many records are read at a time.
const PAGE: usize = 100;
/// What the keys of documents begin with.
const DOCUMENTS: &str = "doc/";

impl Doctor<'_> {
    /// Finds documents that have neither a text nor points, where those of another are there that has no record.
    pub(crate) async fn misplaced(&mut self) {
        // What cannot be read here is told by those who look at each record.
        for document in self.bare().await.unwrap_or_default() {
            for doc_id in self.without_record(&document).await.unwrap_or_default() {
                self.misplaced.extend([document.doc_id, doc_id]);
                let what = format!(
                    "document {} has neither text nor points, and those of document {doc_id}, which has no record, \
                     are there: the key of its record may be damaged",
                    document.doc_id
                );
                let remedy = "nothing of the two is touched; a backup has the right one";
                self.found(what, Some(&document.title), RepairAction::Lost(remedy)).await;
            }
        }
    }

    /// Whether a record is about a document that may be another.
    pub(crate) fn is_misplaced(&self, entry: &Entry) -> bool {
        let doc_id = match entry {
            Entry::Document(document) => &document.doc_id,
            Entry::Task(task) => &task.subject.record_id(),
            Entry::ActiveTask(doc_id, _)
            | Entry::FailedAttempt(doc_id, ..)
            | Entry::ConcurrentEdit(doc_id, _)
            | Entry::Content(_, doc_id)
            | Entry::Simhash(doc_id, _) => doc_id,
            _ => return false,
        };
        self.misplaced.contains(doc_id)
    }

    /// The live documents that have neither a text nor points.
    async fn bare(&self) -> Result<Vec<Document>> {
        let (mut bare, mut after) = (Vec::new(), DOCUMENTS.to_owned());
        loop {
            let page = self.ports.catalog.scan_records(Some(&after), PAGE).await?;
            let Some(last) = page.last() else { return Ok(bare) };
            after.clone_from(&last.key);
            for surveyed in page {
                if !surveyed.key.starts_with(DOCUMENTS) {
                    return Ok(bare);
                }
                let Some(Entry::Document(document)) = surveyed.entry else { continue };
                if self.is_bare(&document).await? {
                    bare.push(*document);
                }
            }
        }
    }

    async fn is_bare(&self, document: &Document) -> Result<bool> {
        let Document { doc_id, revision, .. } = *document;
        // Nearly all have a text.
        Ok(self.ports.texts.length(doc_id, revision).await.is_err()
            && !self.has_points(doc_id, revision).await?)
    }

    async fn has_points(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        let own = Filter::only(Condition::Revision(doc_id, revision));
        for layer in layers() {
            let collection = Collection::from(layer);
            // Points that cannot be counted may be there.
            if self.ports.vectors.count(&collection, &own).await.unwrap_or(1) > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The documents that have a text and points of this revision, and no record.
    async fn without_record(&self, document: &Document) -> Result<Vec<DocId>> {
        let mut found = Vec::new();
        for (doc_id, revision) in self.ports.texts.stored().await? {
            let is_known = self.ports.catalog.knows(doc_id, revision).await.unwrap_or(true);
            if revision == document.revision && !is_known && self.has_points(doc_id, revision).await? {
                found.push(doc_id);
            }
        }
        Ok(found)
    }
}
