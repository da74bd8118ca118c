//! The report of an ingestion.

use std::{collections::BTreeSet, fmt, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{exit::Exit, terminal::plural};

/// A document whose work ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) source: String,
    pub(super) outcome: Outcome,
}

/// How the work on a document ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was refused, with the exit code of the refusal.
    Refused(String, Exit),
    /// It was accepted, and nobody waited.
    Accepted { task_id: String },
    /// Its task is done, with this result.
    Done { task_id: String, result: Value },
    /// Its task failed.
    Failed { task_id: String, reason: String },
}

impl Ended {
    /// Why it failed.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Refused(reason, _) | Outcome::Failed { reason, .. } => Some(reason),
            Outcome::Accepted { .. } | Outcome::Done { .. } => None,
        }
    }

    /// Whether the end of its task was awaited.
    pub(super) const fn has_waited(&self) -> bool {
        !matches!(self.outcome, Outcome::Accepted { .. })
    }

    /// The id of the document, or of the task if nobody waited for the document.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Accepted { task_id } => Some(task_id),
            Outcome::Done { result, .. } => result.get("doc_id").and_then(Value::as_str),
            Outcome::Refused(..) | Outcome::Failed { .. } => None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let source = &self.source;
        match &self.outcome {
            Outcome::Refused(reason, _) => json!({"source": source, "status": "refused", "error": reason}),
            Outcome::Accepted { task_id } => {
                json!({"source": source, "status": "pending", "task_id": task_id})
            }
            Outcome::Done { task_id, result } => {
                json!({"source": source, "status": "done", "task_id": task_id, "result": result})
            }
            Outcome::Failed { task_id, reason } => {
                json!({"source": source, "status": "failed", "task_id": task_id, "error": reason})
            }
        }
    }
}

/// The result of an ingestion.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The number of documents that became searchable.
    pub(crate) documents: u64,
    /// The number of documents whose text was stored already.
    pub(crate) duplicates: u64,
    /// The number of chunks.
    pub(crate) chunks: u64,
    /// The source of each failed document, and the reason.
    pub(crate) failed: Vec<(String, String)>,
    /// What the server remarked, each once.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) warnings: BTreeSet<String>,
    /// Seconds from the first submission to the end of the last task.
    pub(crate) seconds: f64,
    /// The exit code of the first failure.
    #[serde(skip)]
    first_failure: Option<Exit>,
}

impl Report {
    /// Counts a document.
    pub(super) fn count(&mut self, ended: &Ended) {
        match &ended.outcome {
            Outcome::Accepted { .. } => self.documents += 1,
            Outcome::Done { result, .. } => {
                let is_duplicate = result.get("duplicate_of").is_some_and(Value::is_object);
                if is_duplicate {
                    self.duplicates += 1;
                    return;
                }
                self.documents += 1;
                self.chunks += result.pointer("/counts/chunks").and_then(Value::as_u64).unwrap_or_default();
                let warnings = result.get("warnings").and_then(Value::as_array).into_iter().flatten();
                self.warnings.extend(warnings.filter_map(Value::as_str).map(str::to_owned));
            }
            Outcome::Refused(reason, exit) => self.fail(ended, reason, *exit),
            Outcome::Failed { reason, .. } => self.fail(ended, reason, Exit::Failed),
        }
    }

    pub(super) fn finish(mut self, took: Duration) -> Self {
        self.seconds = took.as_secs_f64();
        self
    }

    fn fail(&mut self, ended: &Ended, reason: &str, exit: Exit) {
        self.failed.push((ended.source.clone(), reason.to_owned()));
        self.first_failure.get_or_insert(exit);
    }

    /// The exit code: of the failure if everything failed.
    pub(super) fn exit(&self) -> Exit {
        match self.first_failure {
            None => Exit::Done,
            Some(exit) if self.documents + self.duplicates == 0 => exit,
            Some(_) => Exit::Partly,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, duplicates, chunks, failed, seconds, .. } = self;
        write!(
            f,
            "{} added, {} in {seconds:.1} s",
            plural(*documents, "document"),
            plural(*chunks, "chunk")
        )?;
        if *duplicates > 0 {
            write!(f, ", {} stored already", plural(*duplicates, "document"))?;
        }
        if !failed.is_empty() {
            write!(f, ", {} failed", failed.len())?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome) -> Ended {
        Ended { source: "a.md".to_owned(), outcome }
    }

    fn done(result: Value) -> Ended {
        ended(Outcome::Done { task_id: "t".to_owned(), result })
    }

    #[test]
    fn report_counts_what_was_added_stored_already_and_failed() {
        let mut report = Report::default();
        report.count(&done(json!({"doc_id": "d", "counts": {"chunks": 3}, "duplicate_of": null})));
        assert_eq!(report.exit(), Exit::Done);
        report.count(&done(json!({"doc_id": "d", "counts": {"chunks": 9}, "duplicate_of": {"doc_id": "d"}})));
        report.count(&ended(Outcome::Refused("blank".to_owned(), Exit::Refused)));
        let report = report.finish(Duration::from_millis(1_500));
        let line = "1 document added, 3 chunks in 1.5 s, 1 document stored already, 1 failed\n";
        assert_eq!((report.to_string().as_str(), report.exit()), (line, Exit::Partly));
    }

    #[test]
    fn exit_code_is_that_of_the_failure_if_everything_failed() {
        let mut report = Report::default();
        report.count(&ended(Outcome::Refused("blank".to_owned(), Exit::Refused)));
        assert_eq!(report.exit(), Exit::Refused);
    }
}
