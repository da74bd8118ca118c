use std::{fmt, sync::Arc, time::Duration};

use lkr_domain::hex;
use lkr_state::{ErrorKind as StateErrorKind, Expect, KeyedMutex, StateStore, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Account, Actor, AuditAction, AuditLog, NewAccount, OperatorToken, Result, Role, ThrottleOptions,
    audit::detail,
    check_password, check_username,
    hasher::Hasher,
    records::{AccountV1, INITIALISED, account_key, decode, encode},
    throttle::Throttle,
};

/// The username of the account that the first start creates.
pub const FIRST_ADMIN: &str = "admin";

/// The options of [`Auth`].
#[derive(Debug, Clone)]
pub struct AuthOptions {
    /// PBKDF2 iterations of new hashes; at least 1,000. Hashes with fewer iterations are renewed at the next login.
    pub iterations: u32,
    /// The lifetime of a session.
    pub session_ttl: Duration,
    /// How many passwords are hashed at once. Each hash needs one core for a good part of a second.
    pub max_concurrent_hashes: usize,
    /// How many passwords may wait to be hashed; further ones are refused.
    pub max_waiting_hashes: usize,
    /// The limits of failed logins.
    pub throttle: ThrottleOptions,
    /// A credential of this process, in addition to those in the store; none by default.
    pub operator: Option<OperatorToken>,
}

impl Default for AuthOptions {
    /// 600,000 iterations (see docs/studies.md#password-hashing). Sessions of 12 hours, hashes on half of the cores and 128
    /// waiting passwords were chosen, not measured.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            iterations: 600_000,
            session_ttl: Duration::from_secs(12 * 60 * 60),
            max_concurrent_hashes: (cores / 2).max(1),
            max_waiting_hashes: 128,
            throttle: ThrottleOptions::default(),
            operator: None,
        }
    }
}

/// Accounts, sessions, API keys and the audit log over a state store. Cheap to clone.
#[derive(Clone)]
pub struct Auth {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) session_ttl: Duration,
    pub(crate) hasher: Hasher,
    pub(crate) throttle: Throttle,
    /// Held while an admin changes an account and while it gets a key, by its name in small letters. Many changes at once would make each
    /// other fail: each writes the account's record if it is as it was read.
    pub(crate) changing: KeyedMutex,
    /// The hash of the operator's token.
    pub(crate) operator_hash: Option<String>,
    audit: AuditLog,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("session_ttl", &self.session_ttl).finish_non_exhaustive()
    }
}

impl Auth {
    /// Opens the accounts in `state`.
    ///
    /// # Errors
    /// `Internal` if the options have fewer than 1,000 iterations.
    pub fn new(state: Arc<dyn StateStore>, options: &AuthOptions) -> Result<Self> {
        Ok(Self {
            session_ttl: options.session_ttl,
            hasher: Hasher::new(
                options.iterations,
                options.max_concurrent_hashes,
                options.max_waiting_hashes,
            )?,
            throttle: Throttle::new(Arc::clone(&state), options.throttle),
            changing: KeyedMutex::default(),
            operator_hash: options.operator.as_ref().and_then(OperatorToken::hash),
            audit: AuditLog::new(Arc::clone(&state)),
            state,
        })
    }

    /// The audit log, which records every change of accounts and keys.
    #[must_use]
    pub const fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Whether the first admin was ever created, even if it was deleted since.
    pub async fn is_initialised(&self) -> Result<bool> {
        Ok(self.state.get(INITIALISED).await?.is_some())
    }

    /// Creates the account [`FIRST_ADMIN`], once in the life of the store; `false` if it was created before.
    ///
    /// A caller that generates the password must store it before this call, so that a crash in between locks nobody out.
    pub async fn initialise(&self, password: &str, must_change_password: bool) -> Result<bool> {
        check_password(password)?;
        let new = NewAccount { username: FIRST_ADMIN, password, role: Role::Admin, must_change_password };
        let account = self.new_account(new).await?;
        let by = Actor::program("first start");
        let writes = vec![
            Write::put(INITIALISED, Expect::Absent, "1"),
            put(&account, Expect::Absent)?,
            created(by, &account)?,
        ];
        self.try_apply(writes).await
    }

    /// The account with this name.
    pub async fn account(&self, username: &str) -> Result<Option<Account>> {
        Ok(self.read(username).await?.map(|(account, _)| Account::from(&account)))
    }

    /// The account with this name, and the version of its record. A name that is not a valid username names none.
    pub(crate) async fn read(&self, username: &str) -> Result<Option<(AccountV1, u64)>> {
        if check_username(username).is_err() {
            return Ok(None);
        }
        let Some(record) = self.state.get(&account_key(username)).await? else { return Ok(None) };
        Ok(Some((decode(&record.value)?, record.version)))
    }

    /// The record of a new account. It is not stored.
    pub(crate) async fn new_account(&self, new: NewAccount<'_>) -> Result<AccountV1> {
        let created_at = OffsetDateTime::now_utc();
        Ok(AccountV1 {
            id: hex(&rand::random::<[u8; 16]>()),
            username: new.username.to_owned(),
            admin: new.role == Role::Admin,
            created_at,
            must_change_password: new.must_change_password,
            disabled: false,
            password: self.hash(new.password).await?,
            epoch: 0,
            key_epoch: 0,
            password_at: Some(created_at),
        })
    }

    pub(crate) async fn hash(&self, password: &str) -> Result<String> {
        self.hasher.acquire().await?.hash(password).await
    }

    /// Applies the step; `false` if it met a conflict and must be built again.
    pub(crate) async fn try_apply(&self, writes: Vec<Write>) -> Result<bool> {
        match self.state.apply(writes).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == StateErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) fn put(account: &AccountV1, expect: Expect) -> Result<Write> {
    Ok(Write::put(account_key(&account.username), expect, encode(account)?))
}

/// The audit entry of a new account.
pub(crate) fn created(by: Actor<'_>, account: &AccountV1) -> Result<Write> {
    let detail = detail([
        ("role", Account::from(account).role.name().into()),
        ("must_change_password", account.must_change_password.into()),
    ]);
    AuditLog::entry(by, AuditAction::AccountCreate, &account.username, detail)
}
