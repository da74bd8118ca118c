//! The task that measures the quality of searches.

use std::time::Instant;

use lkr_catalog::{ActiveTask, EvaluateResult, Stage, Task, TaskResult};

use crate::{Error, ErrorKind, Ports, Result, SearchQualities, report::Report};

/// Runs the gold set of a task and ends the task.
pub(crate) async fn evaluate(ports: &Ports, active: ActiveTask, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    let fail = |reason| Error::new(ErrorKind::Internal, "evaluate", reason);
    let evaluator = ports.evaluator.as_ref().ok_or_else(|| fail("no evaluator is configured"))?;
    let gold = ports.catalog.task_input(task.task_id).await?;
    let gold = gold.ok_or_else(|| fail("the gold set of the task is missing"))?;
    let progress = |progress| report.progress(Stage::Evaluate, progress);
    let SearchQualities { flat, layered } = evaluator.evaluate(&gold, &progress).await?;
    let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let queries = flat.queries;
    let result = TaskResult::Evaluated(EvaluateResult { flat, layered, elapsed_ms });
    let done = task.done(ports.catalog.now(), Stage::Evaluate, queries, result);
    Ok(ports.catalog.end(active, &done).await?)
}
