//! Submission: several documents at a time, as fast as the server takes them.

use std::{
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{
    collection::Input,
    http::{ApiError, Client},
};

/// How many documents are sent at once.
const PARALLEL: usize = 8;

/// How long a server may go on saying that it has too much to do.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// A document that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) source: String,
    pub(crate) task_id: String,
}

/// Sends all documents. The first that is refused for good ends it; what was accepted before stays accepted.
pub(crate) fn all(client: &Client, inputs: Vec<Input>) -> Result<Vec<Accepted>> {
    let inputs = Mutex::new(inputs.into_iter());
    let next = || inputs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (results, accepted) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..PARALLEL {
            let (results, next) = (results.clone(), &next);
            scope.spawn(move || {
                while let Some(input) = next() {
                    let result = submit(client, input);
                    let failed = result.is_err();
                    // Nobody receives any more once another document was refused.
                    if results.send(result).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(results);
        accepted.into_iter().collect()
    })
}

fn submit(client: &Client, input: Input) -> Result<Accepted> {
    let Input { title, source, text } = input;
    let body = json!({"title": title, "source": source, "text": text});
    let answer = patiently(|| client.post("/documents", &body).map(|answer| answer.data));
    let data = answer.with_context(|| format!("send {source}"))?;
    let task_id = data.get("task_id").and_then(Value::as_str);
    let task_id = task_id.with_context(|| format!("send {source}: the server's answer holds no task_id"))?;
    Ok(Accepted { task_id: task_id.to_owned(), source })
}

/// Asks again for as long as the server says that it has too much to do, at the pace that it names.
pub(super) fn patiently<T>(ask: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match error.downcast_ref::<ApiError>().and_then(ApiError::pause) {
            Some(pause) if Instant::now() + pause < deadline => thread::sleep(pause),
            _ => return Err(error),
        }
    }
}
