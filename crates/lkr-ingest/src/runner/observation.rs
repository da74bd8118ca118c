//! Counting tasks in progress, and telling the observer how attempts end.

use std::sync::atomic::{AtomicUsize, Ordering};

use lkr_catalog::{Task, TaskKind};

use super::{Jobs, Runner};
use crate::{AttemptOutcome, ErrorKind, Result};

/// Counts a task in progress until it is dropped.
pub(super) struct BusyGuard<'a>(&'a AtomicUsize);

impl<'a> BusyGuard<'a> {
    pub(super) fn enter(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<J: Jobs> Runner<J> {
    /// Tells the observer how an attempt ended. Failures are told when it is known whether another attempt follows.
    pub(super) fn observe_attempt(&self, task: &Task, attempted: &Result<()>) {
        let outcome = match attempted {
            Ok(()) => {
                let took = self.catalog.now() - task.created_at;
                AttemptOutcome::Done(took.try_into().unwrap_or_default())
            }
            Err(error) if !counts_as_attempt(error.kind()) => AttemptOutcome::Interrupted,
            Err(_) => return,
        };
        self.observe(task.kind, outcome);
    }

    pub(super) fn observe(&self, kind: TaskKind, outcome: AttemptOutcome) {
        if let Some(observer) = &self.observer {
            observer.attempt_ended(kind, outcome);
        }
    }
}

/// Whether an error of this kind makes an attempt a failed one.
const fn counts_as_attempt(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::StoreUnavailable | ErrorKind::Waiting(_) | ErrorKind::Superseded | ErrorKind::Conflict
    )
}
