use std::{ops::RangeInclusive, time::Duration};

use lkr_domain::{KeyScope, hex};
use lkr_state::{Expect, Record, ScanOrder, StateStoreExt, Write, retry_on_conflict};
use time::OffsetDateTime;

use crate::{
    Actor, ApiKey, AuditAction, AuditLog, Auth, Credential, Error, ErrorKind, Identity, KeyId, KeyRequest,
    NewKey, Page, Result,
    audit::detail,
    auth::put,
    key_secret::{PREFIX, secret_hash},
    page::RecordListing,
    records::{
        AccountV1, CredentialV1, ListedKeyV1, account_keys, credential_key, damaged, decode, encode,
        listed_key,
    },
    session::TOKEN_BYTES,
};

/// The largest number of keys of an account. Chosen, not measured.
const MAX_KEYS: usize = 100;

/// The length of a key's name, in characters. Chosen, not measured.
const NAME_CHARS: RangeInclusive<usize> = 1..=100;

/// The lifetime of a key that expires: a second to a hundred years. Chosen, not measured.
const LIFETIME: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(36_525 * 24 * 60 * 60);

impl Auth {
    /// Creates an API key of an account. It may do what the account may, and ends with it.
    ///
    /// # Errors
    /// `Invalid` if the name or the lifetime is not allowed, `NotFound` if there is no such account, `Forbidden` if it is
    /// disabled or must change its password, `TooMany` if it has 100 keys.
    pub async fn create_key(
        &self,
        username: &str,
        name: &str,
        expires_in: Option<Duration>,
        by: Actor<'_>,
    ) -> Result<NewKey> {
        let request = KeyRequest { name, expires_in, scope: KeyScope::default() };
        self.store_key(username, new_key(request, None, self.state.now())?, by).await
    }

    /// Like [`create_key`](Self::create_key), for the owner of a credential. If the credential is a key, the new key
    /// expires no later than that key, and at the same time if no lifetime is given.
    ///
    /// # Errors
    /// Like `create_key`, and `Forbidden` if the credential is a restricted key: the new key could do more.
    pub async fn create_key_with(
        &self,
        identity: &Identity,
        request: KeyRequest<'_>,
        request_id: &str,
    ) -> Result<NewKey> {
        if identity.credential.is_restricted() {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "create key",
                "a restricted key cannot create keys",
            ));
        }
        let limit = match identity.credential {
            Credential::Key { expires_at, .. } => expires_at,
            Credential::Session => None,
        };
        let new = new_key(request, limit, self.state.now())?;
        self.store_key(&identity.account.username, new, identity.account.by(request_id)).await
    }

    async fn store_key(&self, username: &str, new: NewKey, by: Actor<'_>) -> Result<NewKey> {
        let _guard = self.changing.lock(username.to_ascii_lowercase()).await;
        retry_on_conflict(&*self.state, "create key", || async {
            let (account, version) = self.read(username).await?.ok_or_else(Error::no_account)?;
            account.check_actor(by)?;
            check_owner(&account)?;
            let keys = self.key_listing(&account_keys(&account.id), None, MAX_KEYS, &account).await?;
            if keys.items.len() >= MAX_KEYS {
                let message = format!("an account has at most {MAX_KEYS} keys");
                return Err(Error::new(ErrorKind::TooMany, "create key", message));
            }
            Ok(self.state.apply(key_writes(&new, &account, version, by)?).await?)
        })
        .await?;
        Ok(new)
    }

    /// Up to `limit` keys of an account, newest first, after the key `after`.
    ///
    /// # Errors
    /// `NotFound` if there is no such account.
    pub async fn keys(
        &self,
        username: &str,
        after: Option<KeyId>,
        limit: usize,
    ) -> Result<Page<ApiKey, KeyId>> {
        let (account, _) = self.read(username).await?.ok_or_else(Error::no_account)?;
        self.key_listing(&account_keys(&account.id), after, limit, &account).await
    }

    /// What a key of an account may do at most; `None` if the account has no such key, or the key ended.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn key_scope(&self, username: &str, id: KeyId) -> Result<Option<KeyScope>> {
        let Some((account, _)) = self.read(username).await? else { return Ok(None) };
        let Some(record) = self.state.get(&listed_key(&account.id, id)).await? else { return Ok(None) };
        let listed: ListedKeyV1 = decode(&record.value)?;
        Ok(listed.is_live(&account, self.state.now()).then(|| listed.scope.into()))
    }

    /// Deletes a key of an account.
    ///
    /// # Errors
    /// `NotFound` if there is no such account or key.
    pub async fn delete_key(&self, username: &str, id: KeyId, by: Actor<'_>) -> Result<()> {
        let (account, _) = self.read(username).await?.ok_or_else(Error::no_account)?;
        account.check_actor(by)?;
        let unknown = || Error::new(ErrorKind::NotFound, "API key", "the account has no such key");
        let key = listed_key(&account.id, id);
        let record = self.state.get(&key).await?.ok_or_else(unknown)?;
        let listed: ListedKeyV1 = decode(&record.value)?;
        if !listed.is_live(&account, self.state.now()) {
            return Err(unknown());
        }
        let detail = detail([("username", account.username.into()), ("name", listed.name.into())]);
        let writes = vec![
            Write::delete(key, Expect::Version(record.version)),
            Write::delete(credential_key(&listed.secret_hash), Expect::Any),
            AuditLog::entry(by, AuditAction::KeyDelete, &id.to_string(), detail)?,
        ];
        // The record is never changed, so a conflict means that the key was deleted.
        if self.try_apply(writes).await? { Ok(()) } else { Err(unknown()) }
    }

    /// The account of the key with this hash, and the key, if the key is valid.
    pub(crate) async fn live_key(&self, secret_hash: &str) -> Result<Option<(AccountV1, Credential)>> {
        let Some(record) = self.state.get(&credential_key(secret_hash)).await? else { return Ok(None) };
        let key: CredentialV1 = decode(&record.value)?;
        let id = key.key_id.parse().map_err(|_| damaged())?;
        let account = self.read(&key.username).await?.map(|(account, _)| account);
        let is_live = |account: &AccountV1| {
            account.id == key.account_id
                && account.key_epoch == key.key_epoch
                && !account.disabled
                && !has_passed(key.expires_at, self.state.now())
        };
        let credential = Credential::Key { id, expires_at: key.expires_at, scope: key.scope.into() };
        Ok(account.filter(is_live).map(|account| (account, credential)))
    }

    /// The writes that remove all keys of an account. Their step must also change the account. Creating a key changes the
    /// account too, so no key can be created between this read and the step.
    pub(crate) async fn key_removals(&self, account_id: &str) -> Result<Vec<Write>> {
        let pick = |key: &str, record: &Record| {
            let listed: ListedKeyV1 = decode(&record.value)?;
            let credential = credential_key(&listed.secret_hash);
            Ok(Some([Write::delete(key, Expect::Any), Write::delete(credential, Expect::Any)]))
        };
        let prefix = account_keys(account_id);
        let listing =
            RecordListing { state: &*self.state, prefix: &prefix, order: ScanOrder::Ascending, after: None };
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
        let listing = RecordListing { state: &*self.state, prefix, order: ScanOrder::Descending, after };
        let now = self.state.now();
        let pick = |key: &str, record: &Record| {
            let id = key.strip_prefix(prefix).and_then(|id| id.parse().ok()).ok_or_else(damaged)?;
            let listed: ListedKeyV1 = decode(&record.value)?;
            Ok(listed.is_live(account, now).then(|| listed.into_key(id)))
        };
        listing.page(limit, pick, |key| key.id).await
    }
}

impl ListedKeyV1 {
    fn is_live(&self, account: &AccountV1, now: OffsetDateTime) -> bool {
        self.key_epoch == account.key_epoch && !has_passed(self.expires_at, now)
    }

    fn into_key(self, id: KeyId) -> ApiKey {
        let Self { name, created_at, expires_at, scope, .. } = self;
        ApiKey { id, name, created_at, expires_at, scope: scope.into() }
    }
}

fn has_passed(time: Option<OffsetDateTime>, now: OffsetDateTime) -> bool {
    time.is_some_and(|time| time <= now)
}

/// Refuses a new key for an account that its owner cannot use. A request may have been authenticated before the account
/// was disabled, and its key would remain valid afterwards.
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
    let is_valid = NAME_CHARS.contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && !name.trim().is_empty();
    if is_valid {
        return Ok(());
    }
    Err(Error::invalid("name", "must have 1 to 100 characters, not all blank, and no control characters"))
}

/// A new key that is created now and expires at `limit` or earlier.
fn new_key(
    request: KeyRequest<'_>,
    limit: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
) -> Result<NewKey> {
    let KeyRequest { name, expires_in, scope } = request;
    check_name(name)?;
    if expires_in.is_some_and(|lifetime| !LIFETIME.contains(&lifetime)) {
        return Err(Error::invalid("expires_in", "must be one second to a hundred years"));
    }
    let expires_at = expires_in.map(|lifetime| created_at + lifetime).or(limit);
    if limit.is_some_and(|limit| expires_at > Some(limit)) {
        return Err(Error::invalid("expires_in", "the key would expire after the key that creates it"));
    }
    let key = ApiKey { id: KeyId::new(), name: name.to_owned(), created_at, expires_at, scope };
    Ok(NewKey { key, secret: format!("{PREFIX}{}", hex(&rand::random::<[u8; TOKEN_BYTES]>())) })
}

/// The step that stores a key. It also writes the unchanged account, so that it conflicts with steps that end the
/// account's keys or create another key.
fn key_writes(new: &NewKey, account: &AccountV1, version: u64, by: Actor<'_>) -> Result<Vec<Write>> {
    let key = &new.key;
    let hash = secret_hash(&new.secret).ok_or_else(|| Error::internal("create key", "no secret"))?;
    let credential = CredentialV1 {
        key_id: key.id.to_string(),
        username: account.username.clone(),
        account_id: account.id.clone(),
        key_epoch: account.key_epoch,
        expires_at: key.expires_at,
        scope: (&key.scope).into(),
    };
    let listed = ListedKeyV1 {
        name: key.name.clone(),
        created_at: key.created_at,
        expires_at: key.expires_at,
        key_epoch: account.key_epoch,
        secret_hash: hash.clone(),
        scope: (&key.scope).into(),
    };
    let detail = detail([("username", account.username.clone().into()), ("name", key.name.clone().into())]);
    let ttl = key.expires_at.map(|end| (end - key.created_at).unsigned_abs());
    Ok(vec![
        put(account, Expect::Version(version))?,
        put_until(credential_key(&hash), encode(credential)?, ttl),
        put_until(listed_key(&account.id, key.id), encode(listed)?, ttl),
        AuditLog::entry(by, AuditAction::KeyCreate, &key.id.to_string(), detail)?,
    ])
}

fn put_until(key: String, value: Vec<u8>, ttl: Option<Duration>) -> Write {
    match ttl {
        Some(ttl) => Write::put_for(key, Expect::Absent, value, ttl),
        None => Write::put(key, Expect::Absent, value),
    }
}
