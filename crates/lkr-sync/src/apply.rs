//! Carrying out a plan.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
};

use crate::{
    ApplyOptions, Error, ErrorKind, Event, FolderSync, Issue, IssueKind, Observer, Plan, PlannedDelete,
    PlannedMove, PlannedUpload, Reason, Remote, Rename, Report, Result,
    error::stopped,
    folder_sync::wait_for_tasks,
    transfer::{Outcome, Transfer},
    workers::{self, Window},
};

/// The most rounds of a run.
const ROUNDS: usize = 3;
/// A run ends when this many items fail one after another: then the service is at fault, not the items.
const FAILURES_IN_A_ROW: usize = 10;

/// One run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    sync: &'a mut FolderSync,
    remote: &'a dyn Remote,
    observer: &'a dyn Observer,
    options: ApplyOptions,
    report: Report,
    /// Documents that may be deleted because their file is gone.
    confirmed: HashSet<String>,
    /// Documents that the service refused to move, and the paths of their files, which are sent instead.
    unmovable: HashMap<String, String>,
    /// The paths of the files that were sent and have their document.
    done: HashSet<String>,
    /// Why items of this round failed, by path.
    failures: BTreeMap<String, String>,
    failures_in_a_row: usize,
    /// Whether tasks of this run may go on.
    has_lost_tasks: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        sync: &'a mut FolderSync,
        remote: &'a dyn Remote,
        observer: &'a dyn Observer,
        options: ApplyOptions,
        plan: &Plan,
    ) -> Self {
        let confirmed = plan.deletes.iter().map(|delete| delete.doc_id.clone()).collect();
        Self {
            sync,
            remote,
            observer,
            options,
            report: Report { unchanged: plan.unchanged, ..Report::default() },
            confirmed,
            unmovable: HashMap::new(),
            done: HashSet::new(),
            failures: BTreeMap::new(),
            failures_in_a_row: 0,
            has_lost_tasks: false,
        }
    }

    pub(crate) fn run(mut self, mut plan: Plan) -> Result<Report> {
        for round in 1..=ROUNDS {
            self.permit_deletes(&mut plan);
            if plan.is_empty() {
                break;
            }
            self.sync.state().begin_changes()?;
            self.failures.clear();
            self.round(round, &plan)?;
            if mem::take(&mut self.has_lost_tasks) {
                wait_for_tasks(self.remote, self.observer)?;
            }
            self.report.kept = 0;
            plan = self.sync.compare(self.remote, self.observer, false, &self.unmovable)?;
        }
        self.permit_deletes(&mut plan);
        self.sync.state().end_changes()?;
        Ok(self.finish(plan))
    }

    /// Leaves the deletes that may be done in the plan, and counts the others.
    fn permit_deletes(&mut self, plan: &mut Plan) {
        let sent: HashSet<&str> = plan.uploads.iter().map(|upload| upload.path.as_str()).collect();
        let may = |delete: &PlannedDelete| {
            let is_known = match self.unmovable.get(&delete.doc_id) {
                Some(path) => self.done.contains(path) || sent.contains(path.as_str()),
                None => self.confirmed.contains(&delete.doc_id),
            };
            self.options.delete && (is_known || delete.reason == Reason::Duplicate)
        };
        let (permitted, kept): (Vec<_>, Vec<_>) = mem::take(&mut plan.deletes).into_iter().partition(may);
        plan.deletes = permitted;
        self.report.kept += kept.len();
    }

    /// Whether a document has to stay, because it could not be moved and its file has no other document yet.
    fn is_held(&self, delete: &PlannedDelete) -> bool {
        let path = self.unmovable.get(&delete.doc_id);
        delete.reason == Reason::Gone && path.is_some_and(|path| !self.done.contains(path))
    }

    fn round(&mut self, round: usize, plan: &Plan) -> Result<()> {
        self.observer.event(&Event::Round {
            round,
            files: plan.uploads.len(),
            bytes: plan.upload_bytes(),
            moves: plan.moves.len(),
            deletes: plan.deletes.len(),
        });
        self.do_moves(&plan.moves)?;
        self.do_uploads(&plan.uploads)?;
        let deletes: Vec<_> = plan.deletes.iter().filter(|delete| !self.is_held(delete)).collect();
        self.do_deletes(&deletes)
    }

    fn do_moves(&mut self, moves: &[PlannedMove]) -> Result<()> {
        let (remote, prefix) = (self.remote, self.sync.source_prefix());
        let work = |planned: &PlannedMove| {
            let source = format!("{prefix}{}", planned.to);
            let (title, removes_digest) = (planned.title.as_deref(), planned.changes_format);
            remote.rename(&planned.doc_id, &Rename { source: &source, title, removes_digest })
        };
        self.each(moves, work, |run, planned, result| match result {
            Ok(()) => {
                run.report.moved += 1;
                run.succeeded(&Event::Moved { from: &planned.from, to: &planned.to });
                Ok(())
            }
            // It was deleted meanwhile. The next round sends the file.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => {
                run.unmovable.insert(planned.doc_id.clone(), planned.to.clone());
                run.failed(&planned.to, 0, error)
            }
        })
    }

    fn do_deletes(&mut self, deletes: &[&PlannedDelete]) -> Result<()> {
        let remote = self.remote;
        let work = |planned: &&PlannedDelete| remote.delete(&planned.doc_id);
        self.each(deletes, work, |run, planned, result| match result {
            Err(error) if error.kind() != ErrorKind::NotFound => run.failed(&planned.path, 0, error),
            _ => {
                run.report.deleted += 1;
                run.succeeded(&Event::Deleted { path: &planned.path });
                Ok(())
            }
        })
    }

    /// Sends requests for all items, several at a time, and handles their results here.
    fn each<T: Sync>(
        &mut self,
        items: &[T],
        work: impl Fn(&T) -> Result<()> + Sync,
        mut handle: impl FnMut(&mut Self, &T, Result<()>) -> Result<()>,
    ) -> Result<()> {
        let window = Window::new(items.len(), self.options.window);
        let work = |item| items.get(item).map(|item| (item, work(item)));
        workers::run(&window, self.options.parallel, work, |results| {
            for (item, result) in results.iter().filter_map(|(_, done)| done) {
                window.release();
                handle(self, item, result)?;
                if self.observer.is_stopped() {
                    return Err(stopped());
                }
            }
            Ok(())
        })
    }

    fn do_uploads(&mut self, uploads: &[PlannedUpload]) -> Result<()> {
        let root = self.sync.root().to_path_buf();
        let transfer = Transfer {
            root: &root,
            source_prefix: &self.sync.source_prefix(),
            remote: self.remote,
            options: self.options,
        };
        transfer.send(uploads, self.observer, &mut |upload, outcome| self.handle(upload, outcome))
    }

    fn handle(&mut self, upload: &PlannedUpload, outcome: Outcome) -> Result<()> {
        let (path, bytes) = (upload.path.as_str(), upload.size);
        match outcome {
            Outcome::Sent => self.observer.event(&Event::Sent { path, bytes }),
            Outcome::Done => {
                let replaces = upload.replaces;
                let count = if replaces { &mut self.report.changed } else { &mut self.report.new };
                *count += 1;
                self.done.insert(path.to_owned());
                self.sync.state().set_refused(path, None);
                self.succeeded(&Event::Done { path, bytes, replaces });
            }
            Outcome::Refused(reason) => {
                self.sync.state().set_refused(path, Some(&reason));
                self.succeeded(&Event::Refused { path, bytes, reason: &reason });
            }
            Outcome::Changed => {
                self.sync.state().unsettle(path);
                let reason = "the file changed while it was sent";
                self.failures.insert(path.to_owned(), reason.to_owned());
                self.observer.event(&Event::Failed { path, bytes, reason });
            }
            Outcome::Lost(error) => {
                self.has_lost_tasks = true;
                if error.kind() != ErrorKind::NotFound {
                    self.failed(path, bytes, error)?;
                }
            }
            Outcome::Failed(reason) => {
                self.failed(path, bytes, Error::new(ErrorKind::Other, "send file", reason))?;
            }
        }
        self.sync.state().save_if_due()
    }

    /// The service answered about this very item.
    fn succeeded(&mut self, event: &Event<'_>) {
        self.failures_in_a_row = 0;
        self.observer.event(event);
    }

    /// Notes a failure. Errors that concern all items are returned.
    fn failed(&mut self, path: &str, bytes: u64, error: Error) -> Result<()> {
        self.failures_in_a_row += 1;
        let is_general = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Stopped);
        if is_general || self.failures_in_a_row >= FAILURES_IN_A_ROW {
            return Err(error);
        }
        let reason = error.reason();
        self.observer.event(&Event::Failed { path, bytes, reason: &reason });
        self.failures.insert(path.to_owned(), reason);
        Ok(())
    }

    /// The report, with what the last plan still contains.
    fn finish(mut self, mut plan: Plan) -> Report {
        let planned = plan.deletes.len();
        plan.deletes.retain(|delete| !self.is_held(delete));
        self.report.kept += planned - plan.deletes.len();
        let uploads = plan.uploads.into_iter().map(|upload| upload.path);
        let moves = plan.moves.into_iter().map(|planned| planned.to);
        let deletes = plan.deletes.into_iter().map(|delete| delete.path);
        let left = uploads.chain(moves).chain(deletes).map(|path| {
            let failure = self.failures.get(&path).map(String::as_str);
            let reason = failure.unwrap_or("the file changed during the run").to_owned();
            Issue::new(path, IssueKind::Failed, reason)
        });
        self.report.issues = plan.issues.into_iter().chain(left).collect();
        self.report.issues.sort();
        self.report
    }
}
