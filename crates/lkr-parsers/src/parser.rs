use std::{fmt::Debug, time::Instant};

use lkr_domain::Parsed;

use crate::Result;

/// What is to be parsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Source<'a> {
    /// The content.
    pub bytes: &'a [u8],
    /// The name of the file it came in, if it came in one.
    pub file_name: Option<&'a str>,
    /// Its media type as its sender declared it, if they did.
    pub media_type: Option<&'a str>,
    /// When the parser should stop and answer what it has, with a warning; it may be a little late.
    pub deadline: Option<Instant>,
}

impl<'a> Source<'a> {
    /// A source without name and type.
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
    /// Whether the deadline is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }
}

/// Extracts the text of a source, and what that text is made of.
///
/// Equal sources have equal results. A source that is partly unreadable is no failure: what could be read is answered,
/// with a warning. A parser does not panic and takes time in proportion to the source's size; it may block, so it is
/// called where blocking is allowed.
pub trait Parser: Debug + Send + Sync + 'static {
    /// The parser's name in settings and logs.
    fn name(&self) -> &'static str;

    /// The text and the blocks of `source`.
    fn parse(&self, source: &Source<'_>) -> Result<Parsed>;
}
