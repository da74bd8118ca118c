//! How accounts, sessions, API keys and counted failures are merged that were written while the store was away.
//!
//! Delete, disable and revoke win, whichever side did them.

mod account;
mod throttle;

use std::time::Duration;

use lkr_state::{Key, MergePolicy, Merged, OfflineChange};
use time::OffsetDateTime;

use crate::{
    audit_record::AUDIT,
    records::{
        ACCOUNTS, ADMINS, AccountV1, CredentialV1, ListedKeyV1, SessionV1, account_key, credential_key,
        decode,
    },
};

/// The policy of the records of this crate. Audit entries can be written while the store is away; to read them, it must be
/// there.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuthMergePolicy;

/// The key prefixes of this crate's records, except audit entries.
const MIRRORED: &[&str] = &["auth/"];

const SESSIONS: &str = "auth/session/";
const CREDENTIALS: &str = "auth/key/";
const LISTED_KEYS: &str = "auth/account-key/";
const THROTTLE: &str = "auth/throttle/";

impl MergePolicy for AuthMergePolicy {
    fn mirrored(&self) -> &'static [&'static str] {
        MIRRORED
    }

    fn write_only(&self) -> &'static [&'static str] {
        &[AUDIT]
    }

    /// A session and an API key depend on their account, the listing of a key on the key.
    fn depends_on(&self, key: &str, value: &[u8]) -> Vec<Key> {
        let needed = if key.starts_with(SESSIONS) {
            decode(value).ok().map(|session: SessionV1| account_key(&session.username))
        } else if key.starts_with(CREDENTIALS) {
            decode(value).ok().map(|key: CredentialV1| account_key(&key.username))
        } else if key.starts_with(LISTED_KEYS) {
            decode(value).ok().map(|listed: ListedKeyV1| credential_key(&listed.secret_hash))
        } else {
            None
        };
        Vec::from_iter(needed)
    }

    fn expires_in(&self, key: &str, value: &[u8]) -> Option<Duration> {
        let expires_at = if key.starts_with(SESSIONS) {
            decode(value).ok().map(|session: SessionV1| session.expires_at)
        } else if key.starts_with(CREDENTIALS) {
            decode(value).ok().and_then(|key: CredentialV1| key.expires_at)
        } else if key.starts_with(LISTED_KEYS) {
            decode(value).ok().and_then(|listed: ListedKeyV1| listed.expires_at)
        } else {
            None
        };
        // A negative duration has passed.
        expires_at.map(|at| (at - OffsetDateTime::now_utc()).try_into().unwrap_or_default())
    }

    /// Steps check the account of the admin who makes them.
    fn is_authority_lost(&self, key: &str, base: Option<&[u8]>, theirs: Option<&[u8]>) -> bool {
        if !key.starts_with(ACCOUNTS) {
            return false;
        }
        let account = |value: Option<&[u8]>| value.and_then(|value| decode::<AccountV1>(value).ok());
        let (base, theirs) = (account(base), account(theirs));
        let is_admin = |account: &AccountV1| {
            base.as_ref().is_some_and(|base| base.id == account.id) && account.is_enabled_admin()
        };
        !theirs.as_ref().is_some_and(is_admin)
    }

    fn merge(&self, change: &OfflineChange<'_>) -> Merged {
        match change.key {
            key if key.starts_with(ACCOUNTS) => account::merge(change),
            key if key.starts_with(SESSIONS) => merge_session(change),
            key if key.starts_with(CREDENTIALS) => merge_credential(change),
            key if key.starts_with(LISTED_KEYS) => merge_listed_key(change),
            key if key.starts_with(THROTTLE) => throttle::merge(change),
            // Each write of this record makes steps conflict that remove an admin, so it is not left out.
            ADMINS => change.ours.map_or(Merged::Keep, |ours| put(change, ours)),
            key if key.starts_with(AUDIT) => change.theirs.map_or_else(|| change.accept(), |_| Merged::Keep),
            _ => change.accept_if_unchanged(),
        }
    }
}

fn put(change: &OfflineChange<'_>, value: &[u8]) -> Merged {
    Merged::Put { value: value.to_vec().into(), ttl: change.ttl }
}

/// The account that a session or a key depends on.
fn account_of(change: &OfflineChange<'_>, username: &str) -> Option<AccountV1> {
    change.related(&account_key(username)).and_then(|value| decode(value).ok())
}

/// A new session is stored if its account would still accept it. A revocation always counts.
fn merge_session(change: &OfflineChange<'_>) -> Merged {
    let Some(ours) = change.ours else { return change.accept() };
    let Ok(session) = decode::<SessionV1>(ours) else { return Merged::Keep };
    let is_valid = account_of(change, &session.username).is_some_and(|account| {
        account.id == session.account_id && account.epoch == session.epoch && !account.disabled
    });
    match is_valid && session.expires_at > OffsetDateTime::now_utc() {
        true => change.accept(),
        false => Merged::overruled(
            &format!("session of account {}", session.username),
            "the account was deleted or disabled, or its sessions were ended",
        ),
    }
}

/// A new key is stored if its account would still accept it. A key of a disabled account is stored: it is valid again when
/// the account is enabled.
fn merge_credential(change: &OfflineChange<'_>) -> Merged {
    let Some(ours) = change.ours else { return change.accept() };
    let Ok(key) = decode::<CredentialV1>(ours) else { return Merged::Keep };
    let is_valid = account_of(change, &key.username)
        .is_some_and(|account| account.id == key.account_id && account.key_epoch == key.key_epoch);
    match is_valid {
        true => change.accept(),
        false => Merged::overruled(
            &format!("API key {} of account {}", key.key_id, key.username),
            "the account was deleted, or its keys were ended",
        ),
    }
}

/// A key is listed if it is stored.
fn merge_listed_key(change: &OfflineChange<'_>) -> Merged {
    let Some(ours) = change.ours else { return change.accept() };
    let Ok(listed) = decode::<ListedKeyV1>(ours) else { return Merged::Keep };
    match change.related(&credential_key(&listed.secret_hash)) {
        Some(_) => change.accept(),
        None => Merged::Keep,
    }
}

#[cfg(test)]
mod tests;
