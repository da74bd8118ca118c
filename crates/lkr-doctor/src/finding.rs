//! The results of a check.

use lkr_domain::Counts;

/// A problem that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The problem, with the id, key or path that it concerns.
    pub what: String,
    /// The title of the document that it concerns.
    pub title: Option<String>,
    /// What a repair does about it.
    pub remedy: String,
    /// What was done.
    pub outcome: RepairOutcome,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOutcome {
    /// Nothing was done.
    Unrepaired,
    /// The problem is repaired.
    Repaired,
    /// A task was accepted that repairs it when the server runs.
    Queued,
    /// The repair failed, for this reason.
    Failed(String),
}

impl Finding {
    /// Whether the problem remains.
    #[must_use]
    pub const fn is_unrepaired(&self) -> bool {
        matches!(self.outcome, RepairOutcome::Unrepaired | RepairOutcome::Failed(_))
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The problems, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The number of live documents.
    pub documents: u64,
    /// The points of live documents by layer.
    pub counts: Counts,
}
