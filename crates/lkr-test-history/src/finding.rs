//! What the checkers of a service's histories report.

use std::fmt;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// No order of the operations on a document explains the answer of one of them.
    NoOrder,
    /// One answer showed a source's document twice.
    ShownTwice,
    /// What a cancelled task was to write was shown.
    CancelledShown,
    /// A credential was accepted although its revocation had been acknowledged before the request began.
    RevokedAccepted,
    /// A session was refused that nothing had revoked.
    ValidRefused,
}

/// What no correct service does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// What is wrong, with the operations that show it.
    pub detail: String,
}

impl Finding {
    pub(crate) const fn new(kind: FindingKind, detail: String) -> Self {
        Self { kind, detail }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.detail)
    }
}
