//! The documents that a load adds: which of them can be deleted, and their removal at the end.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{
    http::Client,
    wait::{retry_while_overloaded, wait_for},
};

/// The pause before the oldest task is read again.
const PAUSE: Duration = Duration::from_millis(50);

/// The attempts to remove all documents.
const ATTEMPTS: usize = 3;

/// The documents that a load added.
#[derive(Debug, Default)]
pub(super) struct Documents(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The tasks that were accepted and not seen to end, oldest first.
    tasks: VecDeque<String>,
    /// The documents that can be deleted.
    searchable: Vec<String>,
    ended: Ended,
}

/// The tasks that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Their documents are searchable.
    pub(super) done: u64,
    pub(super) failed: u64,
}

impl Documents {
    /// Remembers the task of an added document.
    pub(super) fn accepted(&self, task_id: String) {
        self.state().tasks.push_back(task_id);
    }

    /// A document to delete, which no one else gets; `None` if none is searchable.
    pub(super) fn take(&self) -> Option<String> {
        self.state().searchable.pop()
    }

    /// Follows tasks until `is_done`, so that their documents can be deleted.
    pub(super) fn follow(&self, client: &Client, is_done: &AtomicBool) -> Result<()> {
        while !is_done.load(Ordering::Relaxed) {
            if !self.read_oldest(client)? {
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Waits until all tasks have ended, and returns the numbers of those that ended since the last call.
    pub(super) fn drain(&self, client: &Client) -> Result<Ended> {
        while !self.state().tasks.is_empty() {
            if !self.read_oldest(client)? {
                thread::sleep(PAUSE);
            }
        }
        Ok(std::mem::take(&mut self.state().ended))
    }

    /// Reads the oldest task, and returns whether it has ended.
    fn read_oldest(&self, client: &Client) -> Result<bool> {
        let Some(task_id) = self.state().tasks.front().cloned() else { return Ok(false) };
        let path = format!("/documents/tasks/{task_id}");
        let task = retry_while_overloaded(client, || client.get(&path))?.data;
        let text = |key| task.get(key).and_then(Value::as_str);
        let mut state = self.state();
        match text("status") {
            Some("pending" | "running") => return Ok(false),
            Some("done") => {
                let doc_id = text("doc_id").context("a task that is done has no doc_id")?;
                state.searchable.push(doc_id.to_owned());
                state.ended.done += 1;
            }
            _ => state.ended.failed += 1,
        }
        state.tasks.pop_front();
        Ok(true)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes all documents whose sources begin with `prefix`.
pub(super) fn remove(client: &Client, prefix: &str) -> Result<()> {
    let condition = json!({ "field": "source", "prefix": prefix });
    for _ in 0..ATTEMPTS {
        let count = json!({ "where": condition });
        let counted = retry_while_overloaded(client, || client.post("/documents/delete", &count))?.data;
        if counted.get("documents").and_then(Value::as_u64) == Some(0) {
            return Ok(());
        }
        let delete = json!({ "where": condition, "dry_run": false });
        let accepted = retry_while_overloaded(client, || client.post("/documents/delete", &delete))?.data;
        let task_id = accepted.get("task_id").and_then(Value::as_str).context("no task_id")?;
        if let Err(reason) = wait_for(client, task_id, &|_| {})?.outcome() {
            bail!("delete the documents of {prefix}: {reason}");
        }
    }
    bail!("documents whose sources begin with {prefix} remain")
}
