use std::{fmt, ops::RangeInclusive, time::Duration};

use lkr_domain::hex;
use lkr_state::{Expect, Record, ScanOrder, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Actor, AuditAction, AuditLog, Auth, Credential, Error, ErrorKind, Identity, KeyId, Page, Result,
    audit::detail,
    auth::{TRIES, put},
    page::Listing,
    records::{
        AccountV1, CredentialV1, ListedKeyV1, account_keys, credential_key, damaged, decode, encode,
        listed_key,
    },
    session::{TOKEN_BYTES, token_hash},
};

/// What every secret begins with, so that it is known for what it is where it has no business to be.
const PREFIX: &str = "lkr_";

/// How many keys an account has at most.
const MOST: usize = 100;

/// How many characters a name has.
const NAME: RangeInclusive<usize> = 1..=100;

/// How long a key that expires is good for: from a second to a hundred years.
const LIFETIMES: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(36_525 * 24 * 60 * 60);

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it ends by itself; never when `None`.
    pub expires_at: Option<OffsetDateTime>,
}

/// An API key that was made. Its secret is shown here and nowhere else.
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

impl Auth {
    /// Makes an API key of an account. It has the role of the account, and ends with it.
    ///
    /// # Errors
    /// `Invalid` where the name or the lifetime cannot be one, `NotFound` where there is no such account,
    /// `Forbidden` where it is disabled or has to change its password, `TooMany` where it has 100 keys.
    pub async fn create_key(
        &self,
        username: &str,
        name: &str,
        expires_in: Option<Duration>,
        by: Actor<'_>,
    ) -> Result<NewKey> {
        self.make_key(username, new_key(name, expires_in, None)?, by).await
    }

    /// [`create_key`](Self::create_key) for whoever presented a credential: a key makes none that outlives it, and one
    /// that ends with it where no lifetime is asked for.
    pub async fn create_key_with(
        &self,
        identity: &Identity,
        name: &str,
        expires_in: Option<Duration>,
        request_id: &str,
    ) -> Result<NewKey> {
        let limit = match identity.credential {
            Credential::Key { expires_at, .. } => expires_at,
            Credential::Session => None,
        };
        let made = new_key(name, expires_in, limit)?;
        self.make_key(&identity.account.username, made, identity.account.by(request_id)).await
    }

    async fn make_key(&self, username: &str, made: NewKey, by: Actor<'_>) -> Result<NewKey> {
        for _ in 0..TRIES {
            let (account, version) = self.read(username).await?.ok_or_else(Error::no_account)?;
            by.check_same(&account)?;
            check_owner(&account)?;
            let keys = self.key_listing(&account_keys(&account.id), None, MOST, &account).await?;
            if keys.items.len() >= MOST {
                let message = format!("an account has at most {MOST} keys");
                return Err(Error::new(ErrorKind::TooMany, "create key", message));
            }
            if self.try_apply(key_writes(&made, &account, version, by)?).await? {
                return Ok(made);
            }
        }
        Err(Error::keeps_changing("create key"))
    }

    /// Up to `limit` keys of an account, the newest first, beyond `after`.
    ///
    /// # Errors
    /// `NotFound` where there is no such account.
    pub async fn keys(
        &self,
        username: &str,
        after: Option<KeyId>,
        limit: usize,
    ) -> Result<Page<ApiKey, KeyId>> {
        let (account, _) = self.read(username).await?.ok_or_else(Error::no_account)?;
        self.key_listing(&account_keys(&account.id), after, limit, &account).await
    }

    /// Ends a key of an account.
    ///
    /// # Errors
    /// `NotFound` where there is no such account, or it has no such key.
    pub async fn delete_key(&self, username: &str, id: KeyId, by: Actor<'_>) -> Result<()> {
        let (account, _) = self.read(username).await?.ok_or_else(Error::no_account)?;
        by.check_same(&account)?;
        let unknown = || Error::new(ErrorKind::NotFound, "API key", "the account has no such key");
        let key = listed_key(&account.id, id);
        let record = self.state.get(&key).await?.ok_or_else(unknown)?;
        let listed: ListedKeyV1 = decode(&record.value)?;
        if !listed.lives(&account) {
            return Err(unknown());
        }
        let detail = detail([("username", account.username.into()), ("name", listed.name.into())]);
        let writes = vec![
            Write::delete(key, Expect::Version(record.version)),
            Write::delete(credential_key(&listed.secret_hash), Expect::Any),
            AuditLog::entry(by, AuditAction::KeyDelete, &id.to_string(), detail)?,
        ];
        // The record is never changed: who overtook this one has ended the key.
        if self.try_apply(writes).await? { Ok(()) } else { Err(unknown()) }
    }

    /// The account of the key with this hash, and the key, where it is good.
    pub(crate) async fn live_key(&self, secret_hash: &str) -> Result<Option<(AccountV1, Credential)>> {
        let Some(record) = self.state.get(&credential_key(secret_hash)).await? else { return Ok(None) };
        let key: CredentialV1 = decode(&record.value)?;
        let id = key.key_id.parse().map_err(|_| damaged())?;
        let account = self.read(&key.username).await?.map(|(account, _)| account);
        let lives = |account: &AccountV1| {
            account.id == key.account_id
                && account.key_epoch == key.key_epoch
                && !account.disabled
                && !has_passed(key.expires_at)
        };
        let credential = Credential::Key { id, expires_at: key.expires_at };
        Ok(account.filter(lives).map(|account| (account, credential)))
    }

    /// The writes that remove all keys of an account. The step that they are part of also changes the account, as
    /// does the making of a key, so that none is made between this look at them and the step.
    pub(crate) async fn key_removals(&self, account_id: &str) -> Result<Vec<Write>> {
        let pick = |key: &str, record: &Record| {
            let listed: ListedKeyV1 = decode(&record.value)?;
            let found_by = credential_key(&listed.secret_hash);
            Ok(Some([Write::delete(key, Expect::Any), Write::delete(found_by, Expect::Any)]))
        };
        let prefix = account_keys(account_id);
        let listing =
            Listing { state: &*self.state, prefix: &prefix, order: ScanOrder::Ascending, after: None };
        Ok(listing.first(usize::MAX, pick).await?.into_iter().flatten().collect())
    }

    async fn key_listing(
        &self,
        prefix: &str,
        after: Option<KeyId>,
        limit: usize,
        account: &AccountV1,
    ) -> Result<Page<ApiKey, KeyId>> {
        let after = after.map(|id| listed_key(&account.id, id));
        let listing = Listing { state: &*self.state, prefix, order: ScanOrder::Descending, after };
        let pick = |key: &str, record: &Record| {
            let id = key.strip_prefix(prefix).and_then(|id| id.parse().ok()).ok_or_else(damaged)?;
            let listed: ListedKeyV1 = decode(&record.value)?;
            Ok(listed.lives(account).then(|| listed.shown(id)))
        };
        listing.page(limit, pick, |key| key.id).await
    }
}

impl ListedKeyV1 {
    fn lives(&self, account: &AccountV1) -> bool {
        self.key_epoch == account.key_epoch && !has_passed(self.expires_at)
    }

    fn shown(self, id: KeyId) -> ApiKey {
        ApiKey { id, name: self.name, created_at: self.created_at, expires_at: self.expires_at }
    }
}

/// Whether a text is meant to be an API key.
pub(crate) fn is_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// The SHA-256 by which a key is found; `None` where the text cannot be a key.
pub(crate) fn secret_hash(secret: &str) -> Option<String> {
    token_hash(secret.strip_prefix(PREFIX)?)
}

fn has_passed(time: Option<OffsetDateTime>) -> bool {
    time.is_some_and(|time| time <= OffsetDateTime::now_utc())
}

/// An account that its owner cannot use makes no key either. A request that was let in before may come to this
/// afterwards, and its key would outlive what the account was shut for.
fn check_owner(account: &AccountV1) -> Result<()> {
    let refused = |reason| Err(Error::new(ErrorKind::Forbidden, "create key", reason));
    if account.disabled {
        return refused("the account is disabled");
    }
    if account.must_change_password {
        return refused("the password must be changed first");
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let well_formed = NAME.contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && !name.trim().is_empty();
    if well_formed {
        return Ok(());
    }
    Err(Error::invalid("name", "needs 1 to 100 characters, not only blanks, and no control characters"))
}

/// A key that does not outlive `limit`.
fn new_key(name: &str, expires_in: Option<Duration>, limit: Option<OffsetDateTime>) -> Result<NewKey> {
    check_name(name)?;
    if expires_in.is_some_and(|lifetime| !LIFETIMES.contains(&lifetime)) {
        return Err(Error::invalid("expires_in", "needs a second to a hundred years"));
    }
    let created_at = OffsetDateTime::now_utc();
    let expires_at = expires_in.map(|lifetime| created_at + lifetime).or(limit);
    if limit.is_some_and(|limit| expires_at > Some(limit)) {
        return Err(Error::invalid("expires_in", "the key would outlive the one that it is made with"));
    }
    let key = ApiKey { id: KeyId::new(), name: name.to_owned(), created_at, expires_at };
    Ok(NewKey { key, secret: format!("{PREFIX}{}", hex(&rand::random::<[u8; TOKEN_BYTES]>())) })
}

/// The step that makes a key. The account is written as it is: whoever ends its keys, or makes another, at the same
/// moment then has to look again.
fn key_writes(made: &NewKey, account: &AccountV1, version: u64, by: Actor<'_>) -> Result<Vec<Write>> {
    let key = &made.key;
    let hash = secret_hash(&made.secret).ok_or_else(|| Error::internal("create key", "no secret"))?;
    let found = CredentialV1 {
        key_id: key.id.to_string(),
        username: account.username.clone(),
        account_id: account.id.clone(),
        key_epoch: account.key_epoch,
        expires_at: key.expires_at,
    };
    let listed = ListedKeyV1 {
        name: key.name.clone(),
        created_at: key.created_at,
        expires_at: key.expires_at,
        key_epoch: account.key_epoch,
        secret_hash: hash.clone(),
    };
    let detail = detail([("username", account.username.clone().into()), ("name", key.name.clone().into())]);
    let kept = key.expires_at.map(|end| (end - key.created_at).unsigned_abs());
    Ok(vec![
        put(account, Expect::Version(version))?,
        put_until(credential_key(&hash), encode(found)?, kept),
        put_until(listed_key(&account.id, key.id), encode(listed)?, kept),
        AuditLog::entry(by, AuditAction::KeyCreate, &key.id.to_string(), detail)?,
    ])
}

fn put_until(key: String, value: Vec<u8>, kept: Option<Duration>) -> Write {
    match kept {
        Some(ttl) => Write::put_for(key, Expect::Absent, value, ttl),
        None => Write::put(key, Expect::Absent, value),
    }
}
