//! Records whose keys may be damaged. The checksum of a record does not cover its key.

use lkr_catalog::{RecordContent, Result};
use lkr_domain::{DocId, Document, Layer};
use lkr_vectors::{Collection, Condition, Filter};

use crate::{checker::Checker, repair::RepairAction};

/// Records per page of a scan.
const PAGE: usize = 100;

/// The prefix of the keys of documents.
const DOCUMENTS: &str = "doc/";

impl Checker<'_> {
    /// Finds documents without text and points, if another id without a record has a text and points of that revision.
    pub(crate) async fn check_misplaced(&mut self) {
        // Such documents get their records again from their points.
        if self.ports.restorer.is_some() {
            return;
        }
        // Unreadable records are findings of the check of each record.
        for document in self.documents_without_content().await.unwrap_or_default() {
            for doc_id in self.ids_without_record(&document).await.unwrap_or_default() {
                self.misplaced.extend([document.doc_id, doc_id]);
                let what = format!(
                    "document {} has neither text nor points, but document {doc_id}, which has no record, has both: \
                     the key of the record may be damaged",
                    document.doc_id
                );
                let remedy = "neither is changed; restore the record from a backup";
                self.report_finding(what, Some(&document.title), RepairAction::Unrepairable(remedy)).await;
            }
        }
    }

    /// Whether a record belongs to a document that may be misplaced.
    pub(crate) fn is_misplaced(&self, content: &RecordContent) -> bool {
        let doc_id = match content {
            RecordContent::Document(document) => &document.doc_id,
            RecordContent::Task(task) => &task.subject.record_id(),
            RecordContent::ActiveTask(doc_id, _)
            | RecordContent::FailedAttempt(doc_id, ..)
            | RecordContent::ConcurrentEdit(doc_id, _)
            | RecordContent::Content(_, doc_id)
            | RecordContent::Simhash(doc_id, _)
            | RecordContent::SpaceEntry(_, doc_id) => doc_id,
            _ => return false,
        };
        self.misplaced.contains(doc_id)
    }

    /// The live documents without text and points.
    async fn documents_without_content(&self) -> Result<Vec<Document>> {
        let (mut found, mut after) = (Vec::new(), DOCUMENTS.to_owned());
        loop {
            let page = self.ports.catalog.scan_records(Some(&after), PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after.clone_from(&last.key);
            for scanned in page {
                if !scanned.key.starts_with(DOCUMENTS) {
                    return Ok(found);
                }
                let Some(RecordContent::Document(document)) = scanned.content else { continue };
                if self.has_no_content(&document).await? {
                    found.push(*document);
                }
            }
        }
    }

    async fn has_no_content(&self, document: &Document) -> Result<bool> {
        let Document { doc_id, revision, .. } = *document;
        // Nearly all documents have a text, so this check comes first.
        Ok(self.ports.texts.length(doc_id, revision).await.is_err()
            && !self.has_points(doc_id, revision).await?)
    }

    async fn has_points(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        let of_revision = Filter::only(Condition::Revision(doc_id, revision));
        for layer in Layer::ALL {
            let collection = Collection::from(layer);
            // Points that cannot be counted may exist.
            if self.ports.vectors.count(&collection, &of_revision).await.unwrap_or(1) > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The ids that have a text and points of this revision, but no record.
    async fn ids_without_record(&self, document: &Document) -> Result<Vec<DocId>> {
        let mut found = Vec::new();
        for (doc_id, revision) in self.ports.texts.stored().await? {
            let is_referenced = self.ports.catalog.is_referenced(doc_id, revision).await.unwrap_or(true);
            if revision == document.revision && !is_referenced && self.has_points(doc_id, revision).await? {
                found.push(doc_id);
            }
        }
        Ok(found)
    }
}
