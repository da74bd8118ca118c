/// The result of parsing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source is not what this parser reads, or is broken beyond use.
    Input,
    /// The source needs more memory or time than it may have.
    Limit,
    /// The parser failed.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a parser: its kind, the operation, and the source.
}

impl From<std::str::Utf8Error> for Error {
    fn from(error: std::str::Utf8Error) -> Self {
        Self::new(ErrorKind::Input, "read the text as UTF-8", error)
    }
}
