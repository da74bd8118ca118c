//! Points, texts and originals that no record refers to.

use std::collections::BTreeSet;

use lkr_catalog::Result;
use lkr_domain::{DocId, Layer};
use lkr_vectors::{Collection, Condition, Filter, Include};

use crate::{checker::Checker, repair::RepairAction};

/// Points per page of a scan.
const PAGE: usize = 1_000;

impl Checker<'_> {
    pub(crate) async fn check_orphans(&mut self) {
        let mut orphaned = BTreeSet::new();
        for layer in Layer::ALL {
            if let Err(error) = self.find_orphaned_points(layer, &mut orphaned).await {
                self.report_unchecked(format!("orphaned points in {layer}"), error).await;
            }
        }
        orphaned.retain(|(doc_id, _)| !self.misplaced.contains(doc_id));
        for (doc_id, revision) in orphaned {
            let reason = self.reason_of_orphan(doc_id);
            let what = format!("orphaned points of document {doc_id}, revision {revision}: {reason} them");
            self.report_finding(what, None, RepairAction::DeletePoints(doc_id, revision)).await;
        }
        match self.ports.texts.stored().await {
            Ok(stored) => self.check_orphaned_texts(stored).await,
            Err(error) => self.report_unchecked("the list of texts", error).await,
        }
        match self.ports.originals.stored().await {
            Ok(stored) => self.check_orphaned_originals(stored).await,
            Err(error) => self.report_unchecked("the list of originals", error).await,
        }
    }

    async fn check_orphaned_texts(&mut self, stored: BTreeSet<(DocId, u64)>) {
        for (doc_id, revision) in stored {
            if self.misplaced.contains(&doc_id) || self.is_referenced(doc_id, revision).await {
                continue;
            }
            if self.may_be_lost_input(doc_id, revision).await {
                self.report_lost_input(doc_id, revision).await;
                continue;
            }
            let reason = self.reason_of_orphan(doc_id);
            let what = format!("orphaned text of document {doc_id}, revision {revision}: {reason} it");
            self.report_finding(what, None, RepairAction::MoveTextAside(doc_id, revision)).await;
        }
    }

    async fn check_orphaned_originals(&mut self, stored: Vec<String>) {
        for path in stored {
            // A repair may have stored an original that no scanned record names.
            if !self.references.originals.contains(&path) && !self.is_original(&path).await {
                let what = format!("orphaned file {path}: no document refers to it");
                self.report_finding(what, None, RepairAction::MoveOriginalAside(path)).await;
            }
        }
    }

    /// Why no record refers to what a document left.
    fn reason_of_orphan(&self, doc_id: DocId) -> &'static str {
        match self.deleted.contains(&doc_id) {
            true => "the document was deleted, and no record refers to",
            false => "no record refers to",
        }
    }

    /// Whether a record refers to a revision.
    pub(crate) async fn is_referenced(&self, doc_id: DocId, revision: u64) -> bool {
        if self.references.other_revisions.contains(&(doc_id, revision)) {
            return true;
        }
        // An unreadable record may refer to it. That record is a finding of its own.
        let catalog = &self.ports.catalog;
        catalog.is_referenced(doc_id, revision).await.unwrap_or(true)
            // Other processes may have published another revision since the records were scanned.
            || self.ports.restorer.is_some() && catalog.is_garbage(doc_id, revision).await.unwrap_or(true)
    }

    /// Whether a live document or an unfinished task refers to an original, or its document may be misplaced.
    async fn is_original(&self, path: &str) -> bool {
        let id = path.rsplit('/').next().and_then(|name| name.split('_').next()?.parse().ok());
        let Some(doc_id) = id else { return true };
        if self.misplaced.contains(&doc_id) {
            return true;
        }
        let Ok(state) = self.ports.catalog.document_state(doc_id).await else { return true };
        let unfinished = state.unfinished.and_then(|unfinished| unfinished.task.input.original);
        let live = state.document.and_then(|document| document.value.original);
        unfinished.into_iter().chain(live).any(|original| original.path == path)
    }

    /// Finds revisions with points in a layer that no record refers to. The points are scanned only if there are more of
    /// them than the records imply.
    pub(crate) async fn find_orphaned_points(
        &self,
        layer: Layer,
        orphaned: &mut BTreeSet<(DocId, u64)>,
    ) -> Result<()> {
        let (vectors, collection) = (&self.ports.vectors, Collection::from(layer));
        if vectors.describe(&collection).await?.is_none() {
            return Ok(());
        }
        let mut expected = self.references.live_points.get(layer as usize).copied().unwrap_or_default();
        for (doc_id, revision) in &self.references.other_revisions {
            let of_revision = Filter::only(Condition::Revision(*doc_id, *revision));
            expected += vectors.count(&collection, &of_revision).await?;
        }
        if vectors.count(&collection, &Filter::all()).await? <= expected {
            return Ok(());
        }
        let mut after = None;
        loop {
            let all = Filter::all();
            let page = vectors.scroll(&collection, &all, after.as_ref(), PAGE, Include::Payload).await?;
            let revisions: BTreeSet<_> =
                page.points.iter().map(|point| (point.origin.doc_id, point.origin.revision)).collect();
            for (doc_id, revision) in revisions {
                if !self.is_referenced(doc_id, revision).await {
                    orphaned.insert((doc_id, revision));
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
