//! Sends several documents at a time, as fast as the server accepts them.

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

/// The number of documents that are sent at once.
const PARALLEL: usize = 8;

/// The time after which a request is no longer retried while the server is overloaded.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// An accepted document.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) source: String,
    pub(crate) task_id: String,
}

/// Sends all documents. Stops at the first refusal; documents accepted before remain accepted.
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
                    // The receiver is gone once another document was refused.
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
    let response = retry_while_overloaded(|| client.post("/documents", &body).map(|response| response.data));
    let data = response.with_context(|| format!("send {source}"))?;
    let task_id = data.get("task_id").and_then(Value::as_str);
    let task_id = task_id.with_context(|| format!("send {source}: the response has no task_id"))?;
    Ok(Accepted { task_id: task_id.to_owned(), source })
}

/// Repeats a request while the server is overloaded, with the pause that it names.
pub(super) fn retry_while_overloaded<T>(request: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + RETRY_TIMEOUT;
    loop {
        let error = match request() {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        match error.downcast_ref::<ApiError>().and_then(ApiError::pause) {
            Some(pause) if Instant::now() + pause < deadline => thread::sleep(pause),
            _ => return Err(error),
        }
    }
}
