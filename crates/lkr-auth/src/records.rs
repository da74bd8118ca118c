//! What is stored, and under which keys. Records carry their version.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{Account, Error, Result, Role};

/// There once the first admin was made, for ever.
pub(crate) const INITIALISED: &str = "auth/initialised";

pub(crate) fn account_key(username: &str) -> String {
    format!("auth/account/{}", username.to_ascii_lowercase())
}

/// The key of the session whose token has this hash.
pub(crate) fn session_key(token_hash: &str) -> String {
    format!("auth/session/{token_hash}")
}

/// Version 1 of an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AccountV1 {
    /// Tells this account from an earlier one of the same name.
    pub(crate) id: String,
    pub(crate) username: String,
    pub(crate) admin: bool,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    pub(crate) must_change_password: bool,
    pub(crate) disabled: bool,
    /// A PHC string.
    pub(crate) password: String,
    /// Sessions of an earlier epoch have ended.
    pub(crate) epoch: u64,
}

/// Version 1 of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SessionV1 {
    pub(crate) username: String,
    pub(crate) account_id: String,
    pub(crate) epoch: u64,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) expires_at: OffsetDateTime,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned<T> {
    #[serde(rename = "1")]
    V1(T),
}

impl From<&AccountV1> for Account {
    fn from(record: &AccountV1) -> Self {
        Self {
            username: record.username.clone(),
            role: if record.admin { Role::Admin } else { Role::User },
            created_at: record.created_at,
            must_change_password: record.must_change_password,
            disabled: record.disabled,
        }
    }
}

pub(crate) fn encode<T: Serialize>(record: T) -> Result<Vec<u8>> {
    serde_json::to_vec(&Versioned::V1(record)).map_err(|e| Error::internal("write account record", e))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // The source of the error is left out: it may quote the record, which holds secrets.
    let Versioned::V1(record) = serde_json::from_slice(bytes)
        .map_err(|_| Error::internal("read account record", "the record is damaged"))?;
    Ok(record)
}
