/// The result of parsing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source is of another format than its name says, or of one that is not supported.
    Input,
    /// The source is too damaged to parse, or incomplete.
    Damaged,
    /// The source is encrypted with an unknown password.
    Encrypted,
    /// The text of the source is in pictures, which were not read.
    Pictures,
    /// The source exceeds a limit of memory or time.
    Limit,
    /// The source contains more text than is extracted.
    TooMuchText,
    /// The parser failed.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a parser: its kind, the operation, and the source.
}
