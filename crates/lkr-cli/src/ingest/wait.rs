//! Waiting for tasks.

use std::{thread, time::Duration};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{
    http::Client,
    ingest::submit::{Accepted, patiently},
};

/// How often a task is looked at: soon at first, because most are quick, then ever less often.
const POLL: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// How a task ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) source: String,
    /// The number of chunks, or why it failed.
    pub(crate) outcome: Result<u64, String>,
}

#[derive(Debug, Deserialize)]
struct Task {
    status: String,
    result: Option<Done>,
    error: Option<Failure>,
}

#[derive(Debug, Deserialize)]
struct Done {
    counts: Counts,
}

#[derive(Debug, Deserialize)]
struct Counts {
    chunks: u64,
}

#[derive(Debug, Deserialize)]
struct Failure {
    code: u64,
    message: String,
}

/// Waits until every task has ended, in their order: tasks begin in about the order in which they were accepted.
pub(crate) fn all(client: &Client, tasks: &[Accepted]) -> Result<Vec<End>> {
    tasks.iter().map(|task| end_of(client, task)).collect()
}

fn end_of(client: &Client, accepted: &Accepted) -> Result<End> {
    let path = format!("/documents/tasks/{}", accepted.task_id);
    let mut pauses = POLL.into_iter();
    let mut pause = Duration::ZERO;
    loop {
        let data = patiently(|| client.get(&path).map(|answer| answer.data))?;
        let task: Task =
            serde_json::from_value(data).with_context(|| format!("read task {}", accepted.task_id))?;
        if let Some(outcome) = outcome(task)? {
            return Ok(End { source: accepted.source.clone(), outcome });
        }
        pause = pauses.next().unwrap_or(pause);
        thread::sleep(pause);
    }
}

/// What came of a task; nothing while it has not ended.
fn outcome(task: Task) -> Result<Option<Result<u64, String>>> {
    Ok(match (task.status.as_str(), task.result, task.error) {
        ("pending" | "running", ..) => None,
        ("done", Some(done), _) => Some(Ok(done.counts.chunks)),
        ("failed", _, Some(Failure { code, message })) => Some(Err(format!("{code}: {message}"))),
        (status, ..) => bail!("a task is {status} without its result or error"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcomes_follow_the_status() {
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
