//! Waits for tasks.

use std::{thread, time::Duration};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{
    http::Client,
    ingest::submit::{Accepted, retry_while_overloaded},
};

/// Pauses between polls of a task. They grow, because most tasks end quickly; the last one is repeated.
const POLL: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// The end of a task.
#[derive(Debug)]
pub(crate) struct TaskEnd {
    pub(crate) source: String,
    /// The number of chunks, or the reason of the failure.
    pub(crate) outcome: Result<u64, String>,
}

#[derive(Debug, Deserialize)]
struct TaskResponse {
    status: String,
    result: Option<TaskResult>,
    error: Option<TaskError>,
}

#[derive(Debug, Deserialize)]
struct TaskResult {
    counts: Counts,
}

#[derive(Debug, Deserialize)]
struct Counts {
    chunks: u64,
}

#[derive(Debug, Deserialize)]
struct TaskError {
    code: u64,
    message: String,
}

/// Waits for the tasks in the order in which they were accepted, because they start in about that order.
pub(crate) fn all(client: &Client, tasks: &[Accepted]) -> Result<Vec<TaskEnd>> {
    tasks.iter().map(|task| wait_for(client, task)).collect()
}

fn wait_for(client: &Client, accepted: &Accepted) -> Result<TaskEnd> {
    let path = format!("/documents/tasks/{}", accepted.task_id);
    let mut pauses = POLL.into_iter();
    let mut pause = Duration::ZERO;
    loop {
        let data = retry_while_overloaded(|| client.get(&path).map(|response| response.data))?;
        let task: TaskResponse =
            serde_json::from_value(data).with_context(|| format!("read task {}", accepted.task_id))?;
        if let Some(outcome) = outcome(task)? {
            return Ok(TaskEnd { source: accepted.source.clone(), outcome });
        }
        pause = pauses.next().unwrap_or(pause);
        thread::sleep(pause);
    }
}

/// The outcome of a task; `None` while it has not ended.
fn outcome(task: TaskResponse) -> Result<Option<Result<u64, String>>> {
    Ok(match (task.status.as_str(), task.result, task.error) {
        ("pending" | "running", ..) => None,
        ("done", Some(done), _) => Some(Ok(done.counts.chunks)),
        ("failed", _, Some(TaskError { code, message })) => Some(Err(format!("{code}: {message}"))),
        (status, ..) => bail!("unexpected task: status {status} without its result or error"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_follows_the_status() {
        let of = |task| outcome(serde_json::from_value(task).unwrap());
        assert_eq!(of(json!({"status": "running"})).unwrap(), None);
        let done = json!({"status": "done", "result": {"counts": {"l1": 1, "chunks": 7}}});
        assert_eq!(of(done).unwrap(), Some(Ok(7)));
        let failed = json!({"status": "failed", "error": {"code": 2000, "message": "disk"}});
        assert_eq!(of(failed).unwrap(), Some(Err("2000: disk".to_owned())));
        assert!(of(json!({"status": "done"})).is_err());
        assert!(of(json!({"status": "lost"})).is_err());
    }
}
