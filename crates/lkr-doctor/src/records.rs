//! Every record, and whether what it speaks of is there.

use lkr_catalog::{Entry, ScannedRecord, Task, TaskStatus};
use lkr_domain::{DocId, Fingerprint, TaskId};

use crate::{Doctor, RepairAction};

/// How many records are read at a time.
const PAGE: usize = 100;

impl Doctor<'_> {
    pub(crate) async fn records(&mut self) {
        let mut after: Option<String> = None;
        loop {
            let page = match self.ports.catalog.scan_records(after.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    let from = after.map(|after| format!(" beyond {after}")).unwrap_or_default();
                    return self.unread(format!("the records{from}"), error).await;
                }
            };
            let is_last = page.len() < PAGE;
            after = page.last().map(|surveyed| surveyed.key.clone());
            for surveyed in page {
                self.record(surveyed).await;
            }
            if is_last {
                return;
            }
        }
    }

    async fn record(&mut self, surveyed: ScannedRecord) {
        let key = surveyed.key.clone();
        let Some(entry) = &surveyed.entry else {
            let what = format!("the record {key} cannot be read");
            return self.found(what, None, RepairAction::SetAside(surveyed)).await;
        };
        self.known.note(entry);
        if self.is_misplaced(entry) {
            return;
        }
        let holds = match entry {
            Entry::Document(document) => return self.document(document).await,
            Entry::Task(task) => return self.task(task).await,
            Entry::ActiveTask(doc_id, task_id) => self.is_unfinished(*doc_id, *task_id).await,
            Entry::FailedAttempt(_, _, task_id, _) => self.has_failed(*task_id).await,
            Entry::Gold(task_id) => self.has_task(*task_id).await,
            Entry::ConcurrentEdit(doc_id, revision) => {
                self.ports.catalog.knows(*doc_id, *revision).await.unwrap_or(self.may_hold())
            }
            Entry::Content(sha256, doc_id) => {
                self.has_fingerprint(*doc_id, |fingerprint| fingerprint.sha256 == *sha256).await
            }
            Entry::Simhash(doc_id, bits) => {
                self.has_fingerprint(*doc_id, |fingerprint| fingerprint.simhash == *bits).await
            }
            Entry::Foreign(record) => {
                let said = self.ports.readers.iter().find_map(|read| read(&key, &record.value));
                if said == Some(false) {
                    let what = format!("the record {key} cannot be read");
                    self.found(what, None, RepairAction::Lost("nothing can be done; a backup may have it"))
                        .await;
                }
                true
            }
            // They may speak of what is gone; the next start looks after them.
            Entry::Upsert(_)
            | Entry::Idempotency(_)
            | Entry::Garbage(_)
            | Entry::Change(_)
            | Entry::Upload(..)
            | Entry::Unembedded(_)
            | Entry::Alone => true,
        };
        if !holds {
            let what = format!("the record {key} speaks of what is not there");
            self.found(what, None, RepairAction::Strike(surveyed)).await;
        }
    }

    /// Whether something may be so that speaks of what cannot be read. That is told where it stands; mending moves it
    /// aside, and then there is nothing to speak of.
    const fn may_hold(&self) -> bool {
        self.mender.is_none()
    }

    async fn has_fingerprint(&self, doc_id: DocId, is_it: impl Fn(&Fingerprint) -> bool) -> bool {
        let Ok(document) = self.ports.catalog.document(doc_id).await else { return self.may_hold() };
        document
            .and_then(|document| document.value.fingerprint)
            .is_some_and(|fingerprint| is_it(&fingerprint))
    }

    async fn is_unfinished(&self, doc_id: DocId, task_id: TaskId) -> bool {
        let Ok(task) = self.ports.catalog.task(task_id).await else { return self.may_hold() };
        task.is_some_and(|task| task.subject.record_id() == doc_id && !task.status.has_ended())
    }

    async fn has_task(&self, task_id: TaskId) -> bool {
        self.ports.catalog.task(task_id).await.map_or_else(|_| self.may_hold(), |task| task.is_some())
    }

    async fn has_failed(&self, task_id: TaskId) -> bool {
        let Ok(task) = self.ports.catalog.task(task_id).await else { return self.may_hold() };
        task.is_some_and(|task| task.status == TaskStatus::Failed)
    }

    async fn task(&mut self, task: &Task) {
        if task.status.has_ended() {
            return;
        }
        let (task_id, title) =
            (task.task_id, Some(task.input.title.as_str()).filter(|title| !title.is_empty()));
        let active = self.ports.catalog.active(task.subject).await.ok().flatten();
        if active.is_none_or(|active| active.task_id != task_id) {
            let what = format!("task {task_id} has not ended, and nobody would work on it");
            self.found(what, title, RepairAction::Resume(Box::new(task.clone()))).await;
        }
        if let Some(doc_id) = task.subject.doc_id() {
            let sha256 = task.input.text_sha256.as_deref();
            if let Err(error) = self.ports.texts.get(doc_id, task.input.revision, sha256).await {
                let what = format!("the text that task {task_id} works on cannot be read: {error}");
                self.found(what, title, RepairAction::Lost("the task will fail; send the document again"))
                    .await;
            }
        }
    }
}
