//! The stage and progress of a running task.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use lkr_catalog::{Progress, Stage};
use tokio::sync::watch;

use crate::TaskObserver;

/// Receives the stage and progress of a task from the job that runs it. The runner writes them to the task's record. The
/// observer gets the duration of each stage, that of the last one when the report is dropped.
#[derive(Debug)]
pub(crate) struct Report {
    sender: watch::Sender<(Stage, Progress)>,
    observer: Option<Arc<dyn TaskObserver>>,
    /// When the current stage began.
    begun: Mutex<Instant>,
}

impl Report {
    pub(crate) fn new(observer: Option<Arc<dyn TaskObserver>>) -> (Self, Reports) {
        let (sender, receiver) = watch::channel((Stage::Queued, Progress::default()));
        (Self { sender, observer, begun: Mutex::new(Instant::now()) }, Reports(receiver))
    }

    /// A stage begins whose length is unknown.
    pub(crate) fn begin(&self, stage: Stage) {
        self.progress(stage, Progress::default());
    }

    pub(crate) fn progress(&self, stage: Stage, progress: Progress) {
        let (before, _) = self.sender.send_replace((stage, progress));
        if before != stage {
            self.observe_end(before);
        }
    }

    pub(crate) fn current(&self) -> (Stage, Progress) {
        *self.sender.borrow()
    }

    /// Reports the duration of a stage that ends now. The time before the first stage is none.
    fn observe_end(&self, stage: Stage) {
        let begun = std::mem::replace(
            &mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner),
            Instant::now(),
        );
        if let Some(observer) = self.observer.as_ref().filter(|_| stage != Stage::Queued) {
            observer.stage_ended(stage, begun.elapsed());
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let (stage, _) = self.current();
        self.observe_end(stage);
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
