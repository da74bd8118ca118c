//! What comes of making a summary.

use crate::Summary;

/// A complete summary with its warnings.
#[derive(Debug)]
pub(crate) struct FinishedSummary {
    pub(crate) summary: Summary,
    pub(crate) warnings: Vec<String>,
    /// Whether making it again would yield the same, so that it may be cached.
    pub(crate) cacheable: bool,
}

/// A part of a summary in the making.
#[derive(Debug)]
pub(crate) enum SummaryEvent {
    Text(String),
    End(FinishedSummary),
}
