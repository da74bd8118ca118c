/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A text is no key.
    Invalid,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source. No message holds a secret.
}
