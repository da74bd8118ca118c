//! Whether what a service showed of documents has an order.

mod events;
mod order;
mod state;

use std::{collections::BTreeMap, fmt};

use crate::{Finding, FindingKind, history::Seconds};

/// A request about the document of a source, when it began and ended, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentOperation {
    /// The process that was asked.
    pub process: u32,
    /// The source. Upserts keep one document of it.
    pub source: String,
    /// When the request was sent first, in nanoseconds.
    pub start: u64,
    /// When its effect was known; `None` if it never was, because then it may come at any later time.
    pub end: Option<u64>,
    /// The request, and its outcome.
    pub call: DocumentCall,
}

/// A request about a document. Each write has a number of its own, by which reads name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentCall {
    /// Adds or replaces the document of the source. The text and the title get the number of the write.
    Upsert {
        /// The number.
        write: u64,
        /// The document that the service named.
        doc: String,
        /// When the service accepted it. Its task ended at the operation's end.
        accepted: u64,
        /// How its task ended.
        ended: Ended,
    },
    /// Gives a document another title.
    Retitle {
        /// The document.
        doc: String,
        /// The number.
        write: u64,
        /// What the service answered.
        answer: Answer,
    },
    /// Deletes a document and cancels its task.
    Delete {
        /// The document.
        doc: String,
        /// What the service answered.
        answer: Answer,
    },
    /// Reads one document; `None` if there is none.
    Get {
        /// The document.
        doc: String,
        /// What was shown.
        found: Option<Shown>,
    },
    /// Finds the documents of the source.
    Find {
        /// What was shown.
        found: Vec<Shown>,
    },
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was done.
    Done,
    /// It was cancelled, because the document was deleted or replaced.
    Cancelled,
    /// Nobody saw it end.
    Unknown,
}

/// What a service answered to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was refused, and nothing was changed.
    Refused,
    /// No answer, or one that leaves the effect open.
    Unknown,
}

/// A document as an answer showed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// The document.
    pub doc: String,
    /// The write that its text is of, if the answer shows it.
    pub text: Option<u64>,
    /// The write that its title is of, if the answer shows it.
    pub title: Option<u64>,
}

/// Checks the operations on the documents of each source, which began without one.
///
/// A finding says at which operation every order fails; later operations on that source are then not checked.
#[must_use]
pub fn check_documents(history: &[DocumentOperation]) -> Vec<Finding> {
    let mut sources: BTreeMap<&str, Vec<&DocumentOperation>> = BTreeMap::new();
    for operation in history {
        sources.entry(&operation.source).or_default().push(operation);
    }
    sources.into_values().flat_map(|operations| check_source(&operations)).collect()
}

fn check_source(operations: &[&DocumentOperation]) -> Vec<Finding> {
    let mut findings = direct(operations);
    if findings.is_empty() {
        findings.extend(order::check(operations));
    }
    findings
}

/// What is wrong in any order.
fn direct(operations: &[&DocumentOperation]) -> Vec<Finding> {
    let cancelled: Vec<u64> = operations.iter().filter_map(|operation| operation.cancelled_write()).collect();
    let mut findings = Vec::new();
    for operation in operations {
        let shown = operation.shown();
        if shown.len() > 1 {
            let detail = format!("one answer shows {} documents of a source\n    {operation}", shown.len());
            findings.push(Finding::new(FindingKind::ShownTwice, detail));
        }
        let written = shown.iter().flat_map(|shown| [shown.text, shown.title]).flatten();
        if let Some(write) = written.into_iter().find(|write| cancelled.contains(write)) {
            let detail = format!("write {write} was cancelled and is shown\n    {operation}");
            findings.push(Finding::new(FindingKind::CancelledShown, detail));
        }
    }
    findings
}

impl DocumentOperation {
    /// What the answer showed.
    pub(crate) fn shown(&self) -> &[Shown] {
        match &self.call {
            DocumentCall::Get { found, .. } => found.as_slice(),
            DocumentCall::Find { found } => found,
            _ => &[],
        }
    }

    fn cancelled_write(&self) -> Option<u64> {
        match &self.call {
            DocumentCall::Upsert { write, ended: Ended::Cancelled, .. } => Some(*write),
            _ => None,
        }
    }
}

impl fmt::Display for DocumentOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} {} [{}, ", self.process, self.source, Seconds(self.start))?;
        match self.end {
            Some(end) => write!(f, "{}] {:?}", Seconds(end), self.call),
            None => write!(f, "?] {:?}", self.call),
        }
    }
}
