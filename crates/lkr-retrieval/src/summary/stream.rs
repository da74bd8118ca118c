use futures_util::stream::BoxStream;

use crate::Summary;

/// A part of a summary that comes in parts.
#[derive(Debug, Clone, PartialEq)]
pub enum SummaryPart {
    /// What the text goes on with; not empty, unless the whole text is.
    Text(String),
    /// The whole summary, always the last part, and what the reader should know of it. Its text is that of all parts
    /// before.
    End(Summary, Vec<String>),
}

/// The parts of a summary as they come. It does not fail: where the model does, what it wrote so far stands, or sentences
/// are picked from the results. Dropping it ends the work.
pub type SummaryStream = BoxStream<'static, SummaryPart>;
