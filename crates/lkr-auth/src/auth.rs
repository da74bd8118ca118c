use std::{fmt, sync::Arc, time::Duration};

use lkr_state::{ErrorKind as StateErrorKind, Expect, StateStore, StateStoreExt, Write};
use time::OffsetDateTime;

use crate::{
    Account, Error, ErrorKind, Login, Result, check_password, check_username,
    password::Hasher,
    records::{AccountV1, INITIALISED, account_key, decode, encode},
    session::hex,
};

/// The username of the account that the first start makes.
pub const FIRST_ADMIN: &str = "admin";

/// How often a change is tried anew that another one overtook.
const TRIES: usize = 4;

/// What can be chosen.
#[derive(Debug, Clone)]
pub struct AuthOptions {
    /// PBKDF2 iterations of new hashes; at least 1,000. Hashes of fewer are renewed at the next login.
    pub iterations: u32,
    /// How long a session is good for.
    pub session_ttl: Duration,
    /// How many passwords are hashed at once; each takes a core for a good part of a second.
    pub hashes_at_once: usize,
}

impl Default for AuthOptions {
    /// 600,000 iterations, 12 hours, and half of the cores.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            iterations: 600_000,
            session_ttl: Duration::from_secs(12 * 60 * 60),
            hashes_at_once: (cores / 2).max(1),
        }
    }
}

/// Accounts and sessions over a state store. Cheap to clone.
#[derive(Clone)]
pub struct Auth {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) session_ttl: Duration,
    hasher: Hasher,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("session_ttl", &self.session_ttl).finish_non_exhaustive()
    }
}

impl Auth {
    /// Accounts and sessions in `state`.
    ///
    /// # Errors
    /// `Internal` where the options name fewer than 1,000 iterations.
    pub fn new(state: Arc<dyn StateStore>, options: &AuthOptions) -> Result<Self> {
        let hasher = Hasher::new(options.iterations, options.hashes_at_once)?;
        Ok(Self { state, session_ttl: options.session_ttl, hasher })
    }

    /// Whether the first admin was made, be it there still or not.
    pub async fn is_initialised(&self) -> Result<bool> {
        Ok(self.state.get(INITIALISED).await?.is_some())
    }

    /// Makes the account [`FIRST_ADMIN`], once in the life of the store; `false` where it was made before.
    ///
    /// A caller that writes a generated password down does so before, so that a crash between the two leaves
    /// nobody locked out.
    pub async fn initialise(&self, password: &str, must_change_password: bool) -> Result<bool> {
        check_password(password)?;
        let account = self.new_account(FIRST_ADMIN, true, password, must_change_password).await?;
        let writes = vec![
            Write::put(INITIALISED, Expect::Absent, "1"),
            Write::put(account_key(FIRST_ADMIN), Expect::Absent, encode(account)?),
        ];
        match self.state.apply(writes).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == StateErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The account of this name.
    pub async fn account(&self, username: &str) -> Result<Option<Account>> {
        Ok(self.read(username).await?.map(|(account, _)| Account::from(&account)))
    }

    /// Begins a session.
    ///
    /// # Errors
    /// `Unauthenticated`, in the same words after the same work, where there is no such account or the password is
    /// another; also where the account is disabled.
    pub async fn login(&self, username: &str, password: &str) -> Result<Login> {
        let found = match check_username(username) {
            Ok(()) => self.read(username).await?,
            Err(_) => None,
        };
        let stored = found.as_ref().map(|(account, _)| account.password.as_str());
        let verified = self.hasher.verify(password, stored).await?;
        let (account, version) = found
            .filter(|_| verified.matches)
            .ok_or_else(|| Error::unauthenticated("the username or the password is wrong"))?;
        if account.disabled {
            return Err(Error::unauthenticated("the account is disabled"));
        }
        if verified.outdated {
            self.renew_hash(account.clone(), version, password).await?;
        }
        let (login, session) = self.begin_session(&account)?;
        self.state.apply(vec![session]).await?;
        Ok(login)
    }

    /// Changes the password of an account, ends all its sessions and begins a new one, in one step.
    ///
    /// # Errors
    /// `Invalid` where the new password cannot be one, or an account that has to change it keeps it;
    /// `Unauthenticated` where the current one is another.
    pub async fn change_password(&self, username: &str, current: &str, new: &str) -> Result<Login> {
        check_password(new)?;
        for _ in 0..TRIES {
            let (mut account, version) = self
                .read(username)
                .await?
                .ok_or_else(|| Error::unauthenticated("the account is not there any more"))?;
            if !self.hasher.verify(current, Some(&account.password)).await?.matches || account.disabled {
                return Err(Error::unauthenticated("the current password is wrong"));
            }
            if account.must_change_password && self.hasher.verify(new, Some(&account.password)).await?.matches
            {
                return Err(Error::invalid("new password", "is the one that has to be changed"));
            }
            account.password = self.hasher.hash(new).await?;
            account.must_change_password = false;
            account.epoch += 1;
            let (login, session) = self.begin_session(&account)?;
            let writes = vec![put(&account, Expect::Version(version))?, session];
            match self.state.apply(writes).await {
                Err(error) if error.kind() == StateErrorKind::Conflict => {}
                result => return result.map(|()| login).map_err(Error::from),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "change password", "the account keeps changing"))
    }

    async fn read(&self, username: &str) -> Result<Option<(AccountV1, u64)>> {
        let Some(record) = self.state.get(&account_key(username)).await? else { return Ok(None) };
        Ok(Some((decode(&record.value)?, record.version)))
    }

    async fn new_account(
        &self,
        username: &str,
        admin: bool,
        password: &str,
        must_change_password: bool,
    ) -> Result<AccountV1> {
        check_username(username)?;
        Ok(AccountV1 {
            id: hex(&rand::random::<[u8; 16]>()),
            username: username.to_owned(),
            admin,
            created_at: OffsetDateTime::now_utc(),
            must_change_password,
            disabled: false,
            password: self.hasher.hash(password).await?,
            epoch: 0,
        })
    }

    /// Stores the password under the iterations in force. Another change of the account has precedence.
    async fn renew_hash(&self, mut account: AccountV1, version: u64, password: &str) -> Result<()> {
        account.password = self.hasher.hash(password).await?;
        match self.state.apply(vec![put(&account, Expect::Version(version))?]).await {
            Err(error) if error.kind() != StateErrorKind::Conflict => Err(error.into()),
            _ => Ok(()),
        }
    }
}

fn put(account: &AccountV1, expect: Expect) -> Result<Write> {
    Ok(Write::put(account_key(&account.username), expect, encode(account)?))
}
