//! Counts tasks, and makes the traces of their attempts.

use std::time::Duration;

use lkr::{
    Stage, Task, TaskKind,
    ports::ingest::{AttemptOutcome, TaskObserver},
};
use tracing::Span;

use crate::{
    metrics::{Counters, Durations, Metrics},
    traces,
};

/// Counts the attempts and stages of tasks. Each attempt has a trace.
#[derive(Debug)]
pub(crate) struct TaskWatch {
    attempts: Counters,
    stages: Durations,
    completions: Durations,
}

impl TaskWatch {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            attempts: metrics.task_attempts.clone(),
            stages: metrics.task_stages.clone(),
            completions: metrics.task_completions.clone(),
        }
    }
}

impl TaskObserver for TaskWatch {
    fn stage_ended(&self, stage: Stage, took: Duration) {
        self.stages.observe(&[stage.name()], took);
    }

    fn attempt_ended(&self, kind: TaskKind, outcome: AttemptOutcome) {
        self.attempts.increase(&[kind.name(), outcome.name()]);
        if let AttemptOutcome::Done(since_accepted) = outcome {
            self.completions.observe(&[kind.name()], since_accepted);
        }
    }

    fn span(&self, task: &Task) -> Span {
        traces::task_span(task)
    }
}
