//! The report of an ingestion.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::ingest::wait::TaskEnd;

/// The most failures that are printed.
const MAX_SHOWN: usize = 20;

/// The result of an ingestion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The number of documents that became searchable.
    pub(crate) documents: u64,
    /// The number of their chunks.
    pub(crate) chunks: u64,
    /// The source of each failed document, and the reason.
    pub(crate) failed: Vec<(String, String)>,
    /// Seconds from the first submission to the end of the last task.
    pub(crate) seconds: f64,
}

impl Report {
    pub(crate) fn new(ends: Vec<TaskEnd>, took: Duration) -> Self {
        let mut report = Self { documents: 0, chunks: 0, failed: Vec::new(), seconds: took.as_secs_f64() };
        for TaskEnd { source, outcome } in ends {
            match outcome {
                Ok(chunks) => {
                    report.documents += 1;
                    report.chunks += chunks;
                }
                Err(reason) => report.failed.push((source, reason)),
            }
        }
        report
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, chunks, failed, seconds } = self;
        writeln!(f, "documents  {documents}, {} failed", failed.len())?;
        writeln!(f, "chunks     {chunks}")?;
        writeln!(f, "seconds    {seconds:.1}")?;
        for (source, reason) in failed.iter().take(MAX_SHOWN) {
            writeln!(f, "failed     {source}: {reason}")?;
        }
        match failed.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "failed     and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_at_most_twenty_failures() {
        let end = |n: usize| TaskEnd {
            source: format!("c:{n}"),
            outcome: if n < 2 { Ok(3) } else { Err("1001: blank".to_owned()) },
        };
        let report = Report::new((0..24).map(end).collect(), Duration::from_millis(1500));
        assert_eq!((report.documents, report.chunks, report.failed.len()), (2, 6, 22));
        let text = report.to_string();
        assert!(text.contains("documents  2, 22 failed") && text.contains("seconds    1.5"), "{text}");
        assert!(text.contains("c:2: 1001: blank") && text.ends_with("and 2 more\n"), "{text}");
    }
}
