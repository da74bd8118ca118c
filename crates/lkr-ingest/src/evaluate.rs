//! Judging searches by what a person says is right.

use std::{fmt::Debug, time::Instant};

use async_trait::async_trait;
use lkr_catalog::{ActiveTask, EvaluateResult, Progress, SearchQuality, Stage, Task, TaskResult};

use crate::{Error, ErrorKind, Result, ingestor::Inner, pipeline::Report};

/// Searches and judges. What it is given is the gold set as it was accepted.
#[async_trait]
pub trait Evaluator: Debug + Send + Sync + 'static {
    /// The figures of flat and of layered searches. `report` hears how many queries are done.
    async fn evaluate(&self, gold: &[u8], report: &(dyn Fn(Progress) + Send + Sync)) -> Result<Judged>;
}

/// What flat and layered searches are worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Chunks alone.
    pub flat: SearchQuality,
    /// All layers.
    pub layered: SearchQuality,
}

/// Runs the gold set of a task, and ends the task.
pub(crate) async fn evaluate(inner: &Inner, active: ActiveTask, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    let fail = |reason| Error::new(ErrorKind::Internal, "evaluate", reason);
    let evaluator = inner.ports.evaluator.as_ref().ok_or_else(|| fail("nothing here judges searches"))?;
    let gold = inner.ports.catalog.gold(task.task_id).await?;
    let gold = gold.ok_or_else(|| fail("the gold set is gone"))?;
    let heard = |progress| {
        report.send_replace((Stage::Evaluate, progress));
    };
    let Judged { flat, layered } = evaluator.evaluate(&gold, &heard).await?;
    let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let queries = flat.queries;
    let result = TaskResult::Evaluated(EvaluateResult { flat, layered, elapsed_ms });
    Ok(inner.ports.catalog.end(active, &task.done(Stage::Evaluate, queries, result)).await?)
}
