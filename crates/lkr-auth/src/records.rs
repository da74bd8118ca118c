//! The stored records and their keys. Each record carries its format version. Records with hashes have no `Debug` form.

use std::collections::BTreeSet;

use lkr_domain::{KeyScope, SpaceName};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use crate::{Account, Actor, Error, KeyId, Result, Role, audit_record::read_entry};

/// Exists for ever once the first admin was created.
pub const INITIALISED: &str = "auth/initialised";

/// Written by every step that removes an enabled admin, so that two such steps conflict.
pub(crate) const ADMINS: &str = "auth/admins";

/// The key prefix of accounts; the name follows.
pub(crate) const ACCOUNTS: &str = "auth/account/";

pub(crate) fn account_key(username: &str) -> String {
    format!("{ACCOUNTS}{}", username.to_ascii_lowercase())
}

/// The key of the session with this token hash.
pub(crate) fn session_key(token_hash: &str) -> String {
    format!("auth/session/{token_hash}")
}

/// The key of the record for authenticating with the API key with this hash.
pub(crate) fn credential_key(secret_hash: &str) -> String {
    format!("auth/key/{secret_hash}")
}

/// The key prefix of an account's API keys; the key's id follows.
pub(crate) fn account_keys(account_id: &str) -> String {
    format!("auth/account-key/{account_id}/")
}

/// The key of the record for listing an API key.
pub(crate) fn listed_key(account_id: &str, key: KeyId) -> String {
    format!("{}{key}", account_keys(account_id))
}

/// Version 1 of an account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountV1 {
    /// Distinguishes this account from an earlier one of the same name.
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
    /// When the password was last set; `None` if that was before this was stored.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "time::serde::rfc3339::option")]
    pub(crate) password_at: Option<OffsetDateTime>,
}

impl AccountV1 {
    /// Refuses an actor that is an earlier account with the same name.
    pub(crate) fn check_actor(&self, actor: Actor<'_>) -> Result<()> {
        let is_other = actor.account_id.is_some_and(|id| id != self.id);
        if is_other && actor.actor.eq_ignore_ascii_case(&self.username) {
            return Err(Error::unauthenticated("the account no longer exists"));
        }
        Ok(())
    }

    /// Whether it is an admin who can log in.
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

/// Version 1 of an API key, for authentication.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CredentialV1 {
    pub(crate) key_id: String,
    pub(crate) username: String,
    pub(crate) account_id: String,
    pub(crate) key_epoch: u64,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) expires_at: Option<OffsetDateTime>,
    #[serde(flatten)]
    pub(crate) scope: KeyScopeV1,
}

/// Version 1 of the limits of an API key. Keys of versions without spaces have none.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct KeyScopeV1 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spaces: Option<BTreeSet<SpaceName>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
}

impl From<&KeyScope> for KeyScopeV1 {
    fn from(scope: &KeyScope) -> Self {
        Self { spaces: scope.spaces.clone(), read_only: !scope.write }
    }
}

impl From<KeyScopeV1> for KeyScope {
    fn from(record: KeyScopeV1) -> Self {
        Self { spaces: record.spaces, write: !record.read_only }
    }
}

/// Version 1 of an API key, for listing.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ListedKeyV1 {
    pub(crate) name: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) expires_at: Option<OffsetDateTime>,
    pub(crate) key_epoch: u64,
    /// The hash in the key of the [`CredentialV1`] record.
    pub(crate) secret_hash: String,
    #[serde(flatten)]
    pub(crate) scope: KeyScopeV1,
}

/// Version 1 of the failures of an account or an address.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct FailuresV1 {
    /// Their times in milliseconds since 1970, oldest first.
    pub(crate) at_ms: Vec<i64>,
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
    // The cause is left out, because it may quote the record, which contains secrets.
    let Versioned::V1(record) = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    Ok(record)
}

/// Whether a record can be decoded; `None` if the key is not of this crate.
#[must_use]
pub fn is_readable(key: &str, value: &[u8]) -> Option<bool> {
    let kind = key.rsplit_once('/').map_or(key, |(kind, _)| kind);
    Some(match kind {
        _ if key == INITIALISED || key == ADMINS => true,
        "auth/account" => decode::<AccountV1>(value).is_ok(),
        "auth/session" => decode::<SessionV1>(value).is_ok(),
        "auth/key" => decode::<CredentialV1>(value).is_ok(),
        "audit" => read_entry(key, value).is_ok(),
        _ if key.starts_with("auth/account-key/") => decode::<ListedKeyV1>(value).is_ok(),
        _ => return None,
    })
}

pub(crate) fn damaged() -> Error {
    Error::internal("read account record", "the record is damaged")
}
