use std::fmt::Debug;

use lkr_domain::Parsed;

use crate::{Deadline, Result};

/// The input of a parser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Source<'a> {
    /// The content.
    pub bytes: &'a [u8],
    /// The name of the file, if the source is one.
    pub file_name: Option<&'a str>,
    /// The media type that the sender declared, if any.
    pub media_type: Option<&'a str>,
    /// When the parser should stop and return what it has, with a warning. It may overrun a little.
    pub deadline: Option<Deadline>,
}

impl<'a> Source<'a> {
    /// Creates a source without a name and a media type.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, file_name: None, media_type: None, deadline: None }
    }
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl Source<'_> {
    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }
}

/// Extracts the text of a source and its blocks.
///
/// Equal sources have equal results. A source that is partly unreadable is not a failure: the parser returns what it
/// could read, with a warning. A source whose only text is in pictures is one, of kind `Pictures`, unless OCR read them. A parser does not panic, and its time is linear in the size of the source. It may block,
/// so callers run it on a blocking thread.
pub trait Parser: Debug + Send + Sync + 'static {
    /// The parser's name in settings and logs.
    fn name(&self) -> &'static str;

    /// Extracts the text and the blocks of `source`.
    fn parse(&self, source: &Source<'_>) -> Result<Parsed>;
}
