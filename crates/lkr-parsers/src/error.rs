/// The result of parsing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source is not what this parser reads, or is broken beyond use.
    Input,
    /// The source is encrypted, and its password is not known.
    Encrypted,
    /// The source needs more memory or time than it may have.
    Limit,
    /// The parser failed.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a parser: its kind, the operation, and the source.
}
