/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What and where.
    pub what: String,
    /// The title of the document that it is about.
    pub title: Option<String>,
    /// What can be done about it.
    pub remedy: String,
    /// What was done.
    pub outcome: RepairOutcome,
}

/// What became of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOutcome {
    /// Nothing was done.
    Left,
    /// It is mended.
    Mended,
    /// A task was accepted that mends it when the server runs.
    Queued,
    /// It could not be mended, for this reason.
    Failed(String),
}

impl Finding {
    /// Whether there is still something to be done.
    #[must_use]
    pub const fn is_left(&self) -> bool {
        matches!(self.outcome, RepairOutcome::Left | RepairOutcome::Failed(_))
    }
}
