use futures_util::stream::BoxStream;

use crate::Summary;

/// A part of a streamed summary.
#[derive(Debug, Clone, PartialEq)]
pub enum SummaryPart {
    /// The next piece of the text; empty only if the whole text is.
    Text(String),
    /// The last part: the complete summary, whose text is that of all parts before, and its warnings.
    End(Summary, Vec<String>),
}

/// The parts of a summary. The stream does not fail: if the model does, the summary is what it wrote so far, or
/// extractive. Dropping the stream ends the work.
pub type SummaryStream = BoxStream<'static, SummaryPart>;
