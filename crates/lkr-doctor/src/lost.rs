//! Documents whose records the state store lost: their points and texts say what they belong to.

use std::collections::{BTreeMap, BTreeSet};

use lkr_catalog::{RecordContent, Result, Stored, adopt_tags, l1_id, updated_by};
use lkr_domain::{DocId, Document, Layer};
use lkr_vectors::{Filter, Include, Point};

use crate::{checker::Checker, repair::RepairAction, restore::LostDocument};

/// Records per page of the scan.
const PAGE: usize = 500;

impl Checker<'_> {
    /// Finds documents without a record, or with one of an earlier revision, that have an L1 point and a text. L1 is written
    /// after all other points, so they were complete. What was deleted is no document.
    pub(crate) async fn check_lost(&mut self) {
        if self.ports.restorer.is_none() {
            return;
        }
        let is_empty = match self.is_without_records().await {
            Ok(is_empty) => is_empty,
            Err(error) => return self.give_up_on_lost(error).await,
        };
        let lost = match self.lost_revisions().await {
            Ok(lost) => lost,
            Err(error) => return self.give_up_on_lost(error).await,
        };
        self.references.recount();
        if self.repairer.is_some() && (is_empty || !lost.is_empty()) {
            // Before anything becomes visible, so that a kill in between leaves no counter that is too small.
            let catalog = &self.ports.catalog;
            let raised = catalog.retry_on_conflict("restore records", || catalog.raise_generations()).await;
            if let Err(error) = raised {
                return self.give_up_on_lost(error).await;
            }
        }
        let before = self.report.findings.len();
        for (doc_id, revisions) in lost {
            self.check_lost_document(doc_id, revisions).await;
        }
        let failed = |finding: &crate::Finding| matches!(finding.outcome, crate::RepairOutcome::Failed(_));
        self.keeps_orphans |= self.report.findings.iter().skip(before).any(failed);
        if is_empty {
            self.end_restoration().await;
        }
    }

    /// Whether the store has no version, as if it was never opened, but there are points or texts.
    async fn is_without_records(&self) -> Result<bool> {
        if self.ports.catalog.has_version().await? {
            return Ok(false);
        }
        let (vectors, l1) = (&self.ports.vectors, Layer::L1.into());
        let has_points =
            vectors.describe(&l1).await?.is_some() && vectors.count(&l1, &Filter::all()).await? > 0;
        Ok(has_points || !self.ports.texts.stored().await?.is_empty())
    }

    async fn give_up_on_lost(&mut self, error: lkr_catalog::Error) {
        self.keeps_orphans = true;
        self.report_unchecked("documents without records", error).await;
    }

    async fn end_restoration(&mut self) {
        let what = "the state store is empty, but there are points or texts: its records are lost".to_owned();
        let repair = match self.keeps_orphans {
            true => RepairAction::Unrepairable("not all documents could be restored; repair again"),
            false => RepairAction::EndRestoration,
        };
        self.report_finding(what, None, repair).await;
        // Until the store has its version, whatever is left may belong to a document.
        let has_failed = self.report.findings.last().is_some_and(crate::Finding::is_unrepaired);
        self.keeps_orphans |= has_failed && self.repairer.is_some();
    }

    /// The revisions with an L1 point that no record refers to, by document, the highest first.
    async fn lost_revisions(&mut self) -> Result<BTreeMap<DocId, Vec<u64>>> {
        self.read_references().await?;
        let mut orphaned = BTreeSet::new();
        self.find_orphaned_points(Layer::L1, &mut orphaned).await?;
        let mut lost = BTreeMap::<_, Vec<_>>::new();
        for (doc_id, revision) in orphaned.into_iter().rev() {
            if !self.misplaced.contains(&doc_id) && !self.deleted.contains(&doc_id) {
                lost.entry(doc_id).or_default().push(revision);
            }
        }
        Ok(lost)
    }

    /// Reads what the records refer to, which of them prove deletions, and how many live documents have an L1 point.
    async fn read_references(&mut self) -> Result<()> {
        let has_l1 = self.ports.vectors.describe(&Layer::L1.into()).await?.is_some();
        let mut after: Option<String> = None;
        loop {
            let page = self.ports.catalog.scan_records(after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|scanned| scanned.key.clone());
            let mut roots = Vec::new();
            for scanned in page {
                match scanned.content {
                    Some(RecordContent::Unknown(record)) => self.note_deletion(&scanned.key, &record.value),
                    Some(RecordContent::Document(document)) => {
                        roots.push(l1_id(document.doc_id, document.revision));
                    }
                    Some(content) => self.references.add(&content),
                    None => {}
                }
            }
            if has_l1 && !roots.is_empty() {
                let found = self.ports.vectors.get(&Layer::L1.into(), &roots, Include::Payload).await?;
                self.references.add_live_points(Layer::L1, found.iter().flatten().count() as u64);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Restores the highest revision of a document that can be read. The others stay orphans.
    async fn check_lost_document(&mut self, doc_id: DocId, revisions: Vec<u64>) {
        let before = match self.ports.catalog.document(doc_id).await {
            Ok(before) => before,
            // The unreadable record is a finding of its own.
            Err(_) => {
                return revisions.iter().for_each(|revision| self.references.keep(doc_id, *revision, None));
            }
        };
        let mut problem = None;
        for revision in revisions {
            if before.as_ref().is_some_and(|before| before.value.revision > revision) {
                break;
            }
            match LostDocument::read(self.ports, doc_id, revision, before.clone()).await {
                Ok(Some(lost)) => return self.report_lost(lost).await,
                // Another process removed or published it since.
                Ok(None) => return,
                Err(error) => problem = problem.or(Some((revision, error))),
            }
        }
        // A document that has a record is complete without it.
        if let Some((revision, error)) = problem.filter(|_| before.is_none()) {
            self.references.keep(doc_id, revision, None);
            let what = format!(
                "document {doc_id}, revision {revision}, has no record, and cannot be restored: {error}"
            );
            let remedy = "its points are kept; restore its text from a backup, or delete them";
            self.report_finding(what, None, RepairAction::Unrepairable(remedy)).await;
        }
    }

    async fn report_lost(&mut self, lost: LostDocument) {
        let document = lost.document.clone();
        let Document { doc_id, revision, .. } = document;
        if self.is_of_deleted_space(&document.space).await {
            self.deleted.insert(doc_id);
            return;
        }
        self.check_space(&document.space).await;
        let what = match &lost.before {
            None => format!("document {doc_id} has points and a text, but its record is lost"),
            Some(before) => format!(
                "document {doc_id} has points and a text of revision {revision}, but its record is that of revision {}",
                before.value.revision
            ),
        };
        self.report_finding(what, Some(&document.title), RepairAction::Restore(Box::new(lost))).await;
        let is_restored = self.report.findings.last().is_some_and(|finding| !finding.is_unrepaired());
        if !is_restored {
            self.references.keep(doc_id, revision, document.original.as_ref());
            self.superseded.insert(doc_id);
        }
    }

    /// Whether the points of a document have tags of a later change than its record, which the state store then lost. They
    /// are a finding. A change that was not finished left a note, and its tags are set back.
    pub(crate) async fn check_newer_tags(&mut self, document: &Document) -> bool {
        if self.ports.restorer.is_none() {
            return false;
        }
        let Ok(Some(newer)) = self.newer_by_tags(document).await else { return false };
        let what = format!("points of document {} were changed later than its record", document.doc_id);
        self.report_finding(what, Some(&document.title), RepairAction::AdoptTags(Box::new(newer))).await;
        true
    }

    async fn newer_by_tags(&self, document: &Document) -> Result<Option<LostDocument>> {
        let Some(l1) = read_l1(self.ports, document.doc_id, document.revision).await? else {
            return Ok(None);
        };
        let recorded = updated_by(&lkr_catalog::tags_of(document));
        if updated_by(&l1.tags) <= recorded || self.ports.catalog.is_changing(document.doc_id).await? {
            return Ok(None);
        }
        let before = self.ports.catalog.document(document.doc_id).await?;
        let before = before.filter(|before| before.value == *document);
        let after = adopt_tags(document, &l1.tags)?;
        let is_moved = after.space != document.space;
        Ok(before.filter(|_| !is_moved).map(|before| LostDocument::changed(before, after)))
    }

    /// Whether a text may be the input of a task that was lost: of a document that is not known, or of a later revision.
    pub(crate) async fn may_be_lost_input(&self, doc_id: DocId, revision: u64) -> bool {
        if self.ports.restorer.is_none() || self.deleted.contains(&doc_id) {
            return false;
        }
        let live = self.ports.catalog.document(doc_id).await;
        live.is_ok_and(|live| live.is_none_or(|live| live.value.revision < revision))
    }

    pub(crate) async fn report_lost_input(&mut self, doc_id: DocId, revision: u64) {
        let bytes = self.ports.texts.length(doc_id, revision).await.unwrap_or_default();
        let what = format!(
            "text of document {doc_id}, revision {revision} ({bytes} bytes): it may have been accepted, but there is \
             neither a task nor a record of it"
        );
        self.report_finding(what, None, RepairAction::MoveInputAside(doc_id, revision)).await;
    }

    /// Remembers a document of which a record of another crate says that it was deleted.
    pub(crate) fn note_deletion(&mut self, key: &str, value: &[u8]) {
        let readers = self.ports.restorer.iter().flat_map(|restorer| &restorer.deletions);
        self.deleted.extend(readers.filter_map(|read| read(key, value)));
    }
}

/// The L1 point of a revision.
pub(crate) async fn read_l1(ports: &crate::Ports, doc_id: DocId, revision: u64) -> Result<Option<Point>> {
    let ids = [l1_id(doc_id, revision)];
    let points = ports.vectors.get(&Layer::L1.into(), &ids, Include::All).await?;
    Ok(points.into_iter().next().flatten())
}

impl LostDocument {
    /// A document whose record is older than the tags of its points.
    fn changed(before: Stored<Document>, document: Document) -> Self {
        Self { document, before: Some(before), has_dense: true, is_complete: true }
    }
}
