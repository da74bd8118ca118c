//! What is stored, and under which keys. Records carry their version. Those that hold hashes cannot be printed.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{Account, AuditId, Error, KeyId, Result, Role};

/// There once the first admin was made, for ever.
pub(crate) const INITIALISED: &str = "auth/initialised";

/// Written by every step that takes an enabled admin away, so that no two such steps pass each other.
pub(crate) const ADMINS: &str = "auth/admins";

/// Before the name of an account.
pub(crate) const ACCOUNTS: &str = "auth/account/";

/// Before the id of an audit entry.
pub(crate) const AUDIT: &str = "audit/";

pub(crate) fn account_key(username: &str) -> String {
    format!("{ACCOUNTS}{}", username.to_ascii_lowercase())
}

/// The key of the session whose token has this hash.
pub(crate) fn session_key(token_hash: &str) -> String {
    format!("auth/session/{token_hash}")
}

/// The key of the record that the API key with this hash is found by.
pub(crate) fn credential_key(secret_hash: &str) -> String {
    format!("auth/key/{secret_hash}")
}

/// Before the ids of the API keys of an account.
pub(crate) fn account_keys(account_id: &str) -> String {
    format!("auth/account-key/{account_id}/")
}

/// The key of the record that an API key is listed by.
pub(crate) fn listed_key(account_id: &str, key: KeyId) -> String {
    format!("{}{key}", account_keys(account_id))
}

pub(crate) fn audit_key(id: AuditId) -> String {
    format!("{AUDIT}{id}")
}

/// Version 1 of an account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// API keys of an earlier epoch have ended.
    #[serde(default)]
    pub(crate) key_epoch: u64,
}

impl AccountV1 {
    /// Whether it can administer.
    pub(crate) const fn is_enabled_admin(&self) -> bool {
        self.admin && !self.disabled
    }
}

/// Version 1 of a session.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SessionV1 {
    pub(crate) username: String,
    pub(crate) account_id: String,
    pub(crate) epoch: u64,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) expires_at: OffsetDateTime,
}

/// Version 1 of what an API key is found by.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CredentialV1 {
    pub(crate) key_id: String,
    pub(crate) username: String,
    pub(crate) account_id: String,
    pub(crate) key_epoch: u64,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) expires_at: Option<OffsetDateTime>,
}

/// Version 1 of what an API key is listed by.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ListedKeyV1 {
    pub(crate) name: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) expires_at: Option<OffsetDateTime>,
    pub(crate) key_epoch: u64,
    /// Leads to the record that it is found by.
    pub(crate) secret_hash: String,
}

/// Version 1 of the failures that are counted for an account or an address.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct FailuresV1 {
    /// When they were, in milliseconds since 1970, the oldest first.
    pub(crate) at_ms: Vec<i64>,
}

/// Version 1 of an audit entry.
#[derive(Serialize, Deserialize)]
pub(crate) struct AuditV1 {
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) at: OffsetDateTime,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) target: String,
    pub(crate) request_id: String,
    pub(crate) detail: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned<T> {
    #[serde(rename = "1")]
    V1(T),
}

impl From<&AccountV1> for Account {
    fn from(record: &AccountV1) -> Self {
        Self {
            id: record.id.clone(),
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
    let Versioned::V1(record) = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    Ok(record)
}

/// Whether a record can be read; `None` where it is none of this crate's.
#[must_use]
pub fn is_readable(key: &str, value: &[u8]) -> Option<bool> {
    let kind = key.rsplit_once('/').map_or(key, |(kind, _)| kind);
    Some(match kind {
        _ if key == INITIALISED || key == ADMINS => true,
        "auth/account" => decode::<AccountV1>(value).is_ok(),
        "auth/session" => decode::<SessionV1>(value).is_ok(),
        "auth/key" => decode::<CredentialV1>(value).is_ok(),
        "audit" => decode::<AuditV1>(value).is_ok(),
        _ if key.starts_with("auth/account-key/") => decode::<ListedKeyV1>(value).is_ok(),
        _ => return None,
    })
}

pub(crate) fn damaged() -> Error {
    Error::internal("read account record", "the record is damaged")
}
