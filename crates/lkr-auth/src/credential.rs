use lkr_domain::KeyScope;
use time::OffsetDateTime;

use crate::{
    Account, Auth, Error, KeyId, Result,
    key_secret::{is_key, secret_hash},
    session::token_hash,
};

/// The owner of a credential, and the credential's kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The owner.
    pub account: Account,
    /// The credential.
    pub credential: Credential,
}

/// The kind of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The token of a session.
    Session,
    /// An API key.
    Key {
        /// Its id.
        id: KeyId,
        /// When it expires; never if `None`.
        expires_at: Option<OffsetDateTime>,
        /// What it may do at most.
        scope: KeyScope,
    },
}

impl Credential {
    /// The limits of an API key; `None` for a session.
    #[must_use]
    pub const fn key_scope(&self) -> Option<&KeyScope> {
        match self {
            Self::Session => None,
            Self::Key { scope, .. } => Some(scope),
        }
    }

    /// The id of an API key; `None` for a session.
    #[must_use]
    pub const fn key_id(&self) -> Option<KeyId> {
        match self {
            Self::Session => None,
            Self::Key { id, .. } => Some(*id),
        }
    }

    /// Whether it is an API key that may do less than its owner.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.key_scope().is_some_and(KeyScope::is_restricted)
    }
}

impl Auth {
    /// The owner of the session token or API key `token`.
    ///
    /// # Errors
    /// `Unauthenticated`, with the same message, if the token is malformed, unknown, ended or expired, or the account is
    /// disabled.
    pub async fn authenticate(&self, token: &str) -> Result<Identity> {
        let found = if is_key(token) { self.by_key(token).await? } else { self.by_session(token).await? };
        found.ok_or_else(unknown)
    }

    /// The owner of the session token `token`. An API key is refused.
    ///
    /// # Errors
    /// `Unauthenticated`, as [`authenticate`](Self::authenticate).
    pub async fn authenticate_session(&self, token: &str) -> Result<Identity> {
        self.by_session(token).await?.ok_or_else(unknown)
    }

    async fn by_session(&self, token: &str) -> Result<Option<Identity>> {
        let Some(hash) = token_hash(token) else { return Ok(None) };
        if let Some(operator) = self.by_operator(&hash).await? {
            return Ok(Some(operator));
        }
        let found = self.live_session(&hash).await?;
        let credential = Credential::Session;
        Ok(found.map(|account| Identity { account: Account::from(&account), credential }))
    }

    async fn by_key(&self, token: &str) -> Result<Option<Identity>> {
        let Some(hash) = secret_hash(token) else { return Ok(None) };
        let found = self.live_key(&hash).await?;
        Ok(found.map(|(account, credential)| Identity { account: Account::from(&account), credential }))
    }
}

fn unknown() -> Error {
    Error::unauthenticated("the credential is unknown or has expired")
}
