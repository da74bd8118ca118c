//! The stage and progress of a running task.

use lkr_catalog::{Progress, Stage};
use tokio::sync::watch;

/// Receives the stage and progress of a task from the job that runs it. The runner writes them to the task's record.
#[derive(Debug)]
pub(crate) struct Report(watch::Sender<(Stage, Progress)>);

impl Report {
    pub(crate) fn new() -> (Self, Reports) {
        let (sender, receiver) = watch::channel((Stage::Queued, Progress::default()));
        (Self(sender), Reports(receiver))
    }

    /// A stage begins whose length is unknown.
    pub(crate) fn begin(&self, stage: Stage) {
        self.progress(stage, Progress::default());
    }

    pub(crate) fn progress(&self, stage: Stage, progress: Progress) {
        self.0.send_replace((stage, progress));
    }

    pub(crate) fn current(&self) -> (Stage, Progress) {
        *self.0.borrow()
    }
}

/// The runner's end of a [`Report`].
#[derive(Debug, Clone)]
pub(crate) struct Reports(watch::Receiver<(Stage, Progress)>);

impl Reports {
    pub(crate) fn stage(&self) -> Stage {
        self.0.borrow().0
    }

    /// What was reported since the last call; `None` for nothing.
    pub(crate) fn take_new(&mut self) -> Option<(Stage, Progress)> {
        self.0.has_changed().unwrap_or_default().then(|| *self.0.borrow_and_update())
    }
}
