//! Checks every record, and that what it refers to exists.

use lkr_catalog::{Catalog, RecordContent, ScannedRecord, Task, TaskStatus, text_digest};
use lkr_domain::{DocId, Document, Fingerprint, TaskId};

use crate::{checker::Checker, repair::RepairAction};

/// Records per page of the scan.
const PAGE: usize = 100;

impl Checker<'_> {
    pub(crate) async fn check_records(&mut self) {
        let mut after: Option<String> = None;
        loop {
            let page = match self.ports.catalog.scan_records(after.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    let from = after.map(|after| format!(" beyond {after}")).unwrap_or_default();
                    return self.report_unchecked(format!("the records{from}"), error).await;
                }
            };
            let is_last = page.len() < PAGE;
            after = page.last().map(|scanned| scanned.key.clone());
            for scanned in page {
                self.check_record(scanned).await;
            }
            if is_last {
                return;
            }
        }
    }

    async fn check_record(&mut self, scanned: ScannedRecord) {
        let key = scanned.key.clone();
        let Some(content) = &scanned.content else {
            let what = format!("the record {key} cannot be read");
            return self.report_finding(what, None, RepairAction::MoveRecordAside(scanned)).await;
        };
        self.references.add(content);
        if self.is_misplaced(content) {
            return;
        }
        let is_valid = match content {
            RecordContent::Document(document) => return self.check_document(document).await,
            RecordContent::Task(task) => return self.check_task(task).await,
            RecordContent::ActiveTask(doc_id, task_id) => self.is_unfinished(*doc_id, *task_id).await,
            RecordContent::FailedAttempt(_, _, task_id, _) => self.has_failed(*task_id).await,
            RecordContent::TaskInput(task_id) | RecordContent::PartialResult(task_id) => {
                self.has_task(*task_id).await
            }
            RecordContent::ConcurrentEdit(doc_id, revision) => {
                self.ports.catalog.is_referenced(*doc_id, *revision).await.unwrap_or(self.assume_valid())
            }
            RecordContent::Content(sha256, doc_id) => {
                self.is_live_with(*doc_id, |document| text_digest(document).as_ref() == Some(sha256)).await
            }
            RecordContent::Simhash(doc_id, bits) => {
                let has_bits = |fingerprint: &Fingerprint| fingerprint.simhash == *bits;
                self.is_live_with(*doc_id, |document| document.fingerprint.as_ref().is_some_and(has_bits))
                    .await
            }
            RecordContent::SpaceEntry(space, doc_id) => {
                self.is_live_with(*doc_id, |document| document.space == *space).await
            }
            RecordContent::TaskEntry(task_id) => self.is_entry_of(&key, *task_id).await,
            RecordContent::Unknown(record) => {
                let is_readable = self.ports.readers.iter().find_map(|read| read(&key, &record.value));
                if is_readable == Some(false) {
                    let what = format!("the record {key} cannot be read");
                    self.report_finding(what, None, RepairAction::Unrepairable("restore it from a backup"))
                        .await;
                }
                true
            }
            // These may refer to deleted data; the next start cleans them up.
            RecordContent::Upsert(_)
            | RecordContent::Idempotency(_)
            | RecordContent::Garbage(_)
            | RecordContent::Change(_)
            | RecordContent::Upload(..)
            | RecordContent::Unembedded(_)
            | RecordContent::Standalone => true,
        };
        if !is_valid {
            let what = format!("the record {key} refers to data that does not exist");
            self.report_finding(what, None, RepairAction::DeleteRecord(scanned)).await;
        }
    }

    /// Whether a reference to an unreadable record counts as valid. A check alone reports the unreadable record only; a
    /// repair moves that record aside, which makes the reference invalid.
    const fn assume_valid(&self) -> bool {
        self.repairer.is_none()
    }

    async fn is_live_with(&self, doc_id: DocId, matches: impl Fn(&Document) -> bool) -> bool {
        let Ok(document) = self.ports.catalog.document(doc_id).await else { return self.assume_valid() };
        document.is_some_and(|document| matches(&document.value))
    }

    async fn is_unfinished(&self, doc_id: DocId, task_id: TaskId) -> bool {
        let Ok(task) = self.ports.catalog.task(task_id).await else { return self.assume_valid() };
        task.is_some_and(|task| task.subject.record_id() == doc_id && !task.status.has_ended())
    }

    async fn has_task(&self, task_id: TaskId) -> bool {
        self.ports.catalog.task(task_id).await.map_or_else(|_| self.assume_valid(), |task| task.is_some())
    }

    async fn is_entry_of(&self, key: &str, task_id: TaskId) -> bool {
        let Ok(task) = self.ports.catalog.task(task_id).await else { return self.assume_valid() };
        task.is_some_and(|task| Catalog::is_entry_of(key, &task))
    }

    async fn has_failed(&self, task_id: TaskId) -> bool {
        let Ok(task) = self.ports.catalog.task(task_id).await else { return self.assume_valid() };
        task.is_some_and(|task| task.status == TaskStatus::Failed)
    }

    async fn check_task(&mut self, task: &Task) {
        let (task_id, title) =
            (task.task_id, Some(task.input.title.as_str()).filter(|title| !title.is_empty()));
        if self.ports.catalog.is_task_indexed(task).await.is_ok_and(|is_indexed| !is_indexed) {
            let what = format!("task {task_id} is missing in the lists of its space and account");
            self.report_finding(what, title, RepairAction::IndexTask(Box::new(task.clone()))).await;
        }
        if task.status.has_ended() {
            return;
        }
        let active = self.ports.catalog.active(task.subject).await.ok().flatten();
        if active.is_none_or(|active| active.task_id != task_id) {
            let what = format!("task {task_id} has not ended, but is not queued");
            self.report_finding(what, title, RepairAction::ResumeTask(Box::new(task.clone()))).await;
        }
        if let Some(doc_id) = task.subject.doc_id() {
            let sha256 = task.input.text_sha256.as_deref();
            if let Err(error) = self.ports.texts.get(doc_id, task.input.revision, sha256).await {
                let what = format!("the text of task {task_id} cannot be read: {error}");
                self.report_finding(
                    what,
                    title,
                    RepairAction::Unrepairable("the task will fail; send the document again"),
                )
                .await;
            }
        }
    }
}
