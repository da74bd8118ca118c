//! Sends several documents at a time, as fast as the server accepts them, and waits for their tasks meanwhile.

use std::{
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Instant,
};

use anyhow::{Context, Result};

use super::{
    item::{Item, Options},
    report::{Ended, Outcome, Report},
};
use crate::{
    exit::{Exit, exit_of, reason},
    http::Client,
    terminal::field,
    wait::{Task, retry_while_overloaded, wait_for},
};

/// The number of documents that are sent at once.
const PARALLEL: usize = 8;

/// Sends all documents, and calls `each` as they end, in about the order in which they were accepted; `watch` sees the task that
/// is waited for. Stops if the server cannot be reached or refuses the caller; what it accepted before stays accepted.
pub(super) fn all(
    client: &Client,
    items: Vec<Item>,
    options: &Options,
    watch: &dyn Fn(&Task),
    mut each: impl FnMut(&Ended) -> Result<()>,
) -> Result<Report> {
    let started = Instant::now();
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (results, sent) = mpsc::channel();
    let mut report = Report::default();
    thread::scope(|scope| {
        for _ in 0..PARALLEL {
            let (results, next) = (results.clone(), &next);
            scope.spawn(move || {
                while let Some(item) = next() {
                    let result = send(client, &item, options);
                    let has_failed = result.is_err();
                    // The receiver is gone once another document could not be sent.
                    if results.send(result).is_err() || has_failed {
                        return;
                    }
                }
            });
        }
        drop(results);
        for ended in sent {
            let ended = if options.waits { awaited(client, ended?, watch)? } else { ended? };
            report.count(&ended);
            each(&ended)?;
        }
        anyhow::Ok(())
    })?;
    Ok(report.finish(started.elapsed()))
}

/// Sends a document. An error means that no further document can be sent either.
fn send(client: &Client, item: &Item, options: &Options) -> Result<Ended> {
    let source = item.source().to_owned();
    let outcome = match retry_while_overloaded(client, || item.send(client, options)) {
        Ok(response) => Outcome::Accepted { task_id: field(&response.data, "task_id") },
        Err(error) => match exit_of(&error) {
            // Of a document, an invalid request is one that the server cannot read.
            Exit::Usage if is_about_document(&error) => Outcome::Refused(reason(&error), Exit::Failed),
            // A file that is missing was removed meanwhile.
            exit @ (Exit::Refused | Exit::Failed | Exit::NotFound) if is_about_document(&error) => {
                Outcome::Refused(reason(&error), exit)
            }
            _ => return Err(error).with_context(|| format!("send {source}")),
        },
    };
    Ok(Ended { source, outcome })
}

/// Whether a refusal is about the document alone: it is invalid, or its file cannot be read.
fn is_about_document(error: &anyhow::Error) -> bool {
    use crate::http::ApiError;
    error.downcast_ref::<ApiError>().is_none_or(|refusal| matches!(refusal.code, Some(1001 | 1003 | 2000)))
}

/// Waits until the task of a document has ended.
fn awaited(client: &Client, ended: Ended, watch: &dyn Fn(&Task)) -> Result<Ended> {
    let Ended { source, outcome: Outcome::Accepted { task_id } } = ended else { return Ok(ended) };
    let outcome = match wait_for(client, &task_id, watch)?.outcome() {
        Ok(result) => Outcome::Done { task_id, result },
        Err(reason) => Outcome::Failed { task_id, reason },
    };
    Ok(Ended { source, outcome })
}
