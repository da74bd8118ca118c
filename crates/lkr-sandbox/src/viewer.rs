use std::fmt::Debug;

use lkr_parsers::{Result, Source};

/// Answers one question about a file, such as what a page looks like.
///
/// It may block and take as long as a parser, and it is confined like one.
pub trait FileViewer: Debug + Send + Sync + 'static {
    /// The answer, in a form that the caller of [`view_for`](crate::Sandbox::view_for) knows. The caller does not trust it.
    fn view(&self, source: &Source<'_>) -> Result<Vec<u8>>;
}
