//! Waiting for tasks, and for a server that is overloaded.

use std::{
    io::{Write as _, stderr},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    exit::reason,
    http::{ApiError, Client},
    terminal::{Output, clean, spinner},
};

/// Pauses between polls of a task. They grow, because most tasks end quickly; the last one is repeated.
const POLL: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// The time after which a request is no longer retried while the server is overloaded.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How long a request waits for an overloaded server without a word.
const SILENT_TIME: Duration = Duration::from_secs(5);

/// A task as the server shows it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Task {
    pub(crate) status: String,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<TaskError>,
    /// The current stage.
    #[serde(default)]
    stage: String,
    #[serde(default)]
    progress: StageProgress,
}

/// How far the current stage is.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct StageProgress {
    done: u64,
    /// 0 if it is not known yet.
    total: u64,
}

/// Why a task failed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskError {
    pub(crate) code: u64,
    pub(crate) message: String,
    /// Whether a retry may succeed.
    #[serde(default)]
    pub(crate) retryable: bool,
}

impl Task {
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.status.as_str(), "pending" | "running")
    }

    /// What a running task does: its stage, and the share of the stage that is done; `None` if it does not run.
    pub(crate) fn activity(&self) -> Option<String> {
        let StageProgress { done, total } = self.progress;
        let share = (total > 0).then(|| format!(" {} %", done.min(total).saturating_mul(100) / total));
        (self.status == "running").then(|| format!("{}{}", self.stage, share.unwrap_or_default()))
    }

    /// The result, or the reason of the failure.
    pub(crate) fn outcome(self) -> Result<Value, String> {
        match self {
            Self { status, result: Some(result), .. } if status == "done" => Ok(result),
            Self { error: Some(TaskError { code, message, .. }), .. } => Err(format!("{code}: {message}")),
            Self { status, .. } => Err(format!("the task is {status} without a result or an error")),
        }
    }
}

/// Reads a task.
pub(crate) fn read_task(client: &Client, task_id: &str) -> Result<Task> {
    let path = format!("/documents/tasks/{task_id}");
    let data = retry_while_overloaded(client, || client.get(&path).map(|response| response.data))?;
    serde_json::from_value(data).with_context(|| format!("read task {task_id}"))
}

/// Waits until a task has ended. `watch` sees it before each pause.
pub(crate) fn wait_for(client: &Client, task_id: &str, watch: &dyn Fn(&Task)) -> Result<Task> {
    let (mut pauses, mut pause) = (POLL.into_iter(), Duration::ZERO);
    loop {
        let task = read_task(client, task_id)?;
        if task.has_ended() {
            return Ok(task);
        }
        watch(&task);
        pause = pauses.next().unwrap_or(pause);
        thread::sleep(pause);
    }
}

/// Waits until a task has ended, with a spinner that says what is waited for and what the task does.
pub(crate) fn wait_visibly(client: &Client, output: &Output, task_id: &str, text: &str) -> Result<Task> {
    let wait = spinner(output, text);
    let ended = wait_for(client, task_id, &show_activity(&wait, text));
    wait.finish_and_clear();
    ended
}

/// Shows in a spinner what a task does.
pub(crate) fn show_activity<'a>(spinner: &'a ProgressBar, text: &'a str) -> impl Fn(&Task) + 'a {
    move |task| {
        let activity = task.activity().map(|activity| format!(": {activity}"));
        spinner.set_message(format!("{text}{}", activity.unwrap_or_default()));
    }
}

/// Repeats a request of a client while the server is overloaded, with the pause that it names. If it takes long, it says so on the
/// standard error: a store behind the server may be away.
pub(crate) fn retry_while_overloaded<T>(client: &Client, request: impl Fn() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let deadline = started + RETRY_TIMEOUT;
    loop {
        let error = match request() {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        match error.downcast_ref::<ApiError>().and_then(ApiError::pause) {
            Some(pause) if Instant::now() + pause < deadline => {
                if started.elapsed() >= SILENT_TIME && client.may_say_that_it_waits() {
                    let minutes = deadline.duration_since(Instant::now()).as_secs().div_ceil(60);
                    let reason = clean(&reason(&error));
                    // With the standard error closed there is nobody to tell.
                    let _ = writeln!(
                        stderr(),
                        "lkr: waiting for the server, for up to {minutes} min more: {reason}"
                    );
                }
                thread::sleep(pause);
            }
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_follows_the_status() {
        let task = |value| serde_json::from_value::<Task>(value).unwrap();
        assert!(!task(json!({"status": "running"})).has_ended());
        let done = task(json!({"status": "done", "doc_id": "d", "result": {"counts": {"chunks": 7}}}));
        assert!(done.has_ended());
        assert_eq!(done.outcome(), Ok(json!({"counts": {"chunks": 7}})));
        let failed = task(json!({"status": "failed", "error": {"code": 2000, "message": "disk"}}));
        assert_eq!(failed.outcome(), Err("2000: disk".to_owned()));
        let embedding = json!({"status": "running", "stage": "embed", "progress": {"done": 3, "total": 9}});
        assert_eq!(task(embedding).activity().unwrap(), "embed 33 %");
        let parsing = json!({"status": "running", "stage": "parse", "progress": {"done": 0, "total": 0}});
        assert_eq!(task(parsing).activity().unwrap(), "parse");
        assert_eq!(task(json!({"status": "pending", "stage": "parse"})).activity(), None);
        assert!(task(json!({"status": "lost"})).outcome().is_err());
    }
}
