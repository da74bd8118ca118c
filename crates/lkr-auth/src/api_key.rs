use std::{fmt, time::Duration};

use lkr_domain::KeyScope;
use time::OffsetDateTime;

use crate::KeyId;

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// Its purpose, chosen by the owner.
    pub name: String,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it expires; never if `None`.
    pub expires_at: Option<OffsetDateTime>,
    /// What it may do at most.
    pub scope: KeyScope,
}

/// An API key to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRequest<'a> {
    /// Its purpose.
    pub name: &'a str,
    /// How long it is valid; for ever if `None`.
    pub expires_in: Option<Duration>,
    /// What it may do at most.
    pub scope: KeyScope,
}

/// A new API key. Its secret is not available later.
#[derive(Clone)]
pub struct NewKey {
    /// The key.
    pub key: ApiKey,
    /// The credential: `lkr_` and 64 lower-case hexadecimal characters.
    pub secret: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("key", &self.key).finish_non_exhaustive()
    }
}
