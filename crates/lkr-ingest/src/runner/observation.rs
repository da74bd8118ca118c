//! Telling the observer how attempts end.

use lkr_catalog::{Task, TaskKind};

use super::{Jobs, Runner};
use crate::{AttemptOutcome, ErrorKind, Result};

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
