use std::net::IpAddr;

use lkr_state::{Expect, Record, ScanOrder, Write};
use serde_json::{Map, Value};

use crate::{
    Account, AccountChange, Actor, Attempt, AuditAction, AuditLog, Auth, Error, FIRST_ADMIN, Login,
    NewAccount, Page, Result, Role,
    audit::detail,
    auth::{TRIES, created, put},
    check_password, check_username,
    guard::Altered,
    page::Listing,
    records::{ACCOUNTS, AccountV1, INITIALISED, account_key, decode},
    throttle::Throttle,
};

impl Auth {
    /// Makes an account of role user for whoever asks, and begins its first session.
    ///
    /// # Errors
    /// `Invalid` where the username or password cannot be one, `Taken` where there is such an account. `RateLimited`
    /// after as many tries from one address as failed logins are let pass.
    pub async fn register(&self, attempt: Attempt<'_>) -> Result<Login> {
        let Attempt { username, password, address, request_id } = attempt;
        let new = NewAccount { username, password, role: Role::User, must_change_password: false };
        check_new(&new)?;
        // Names that are taken count too: else there would be no end to trying which are.
        self.count_registration(address).await?;
        self.check_free(username).await?;
        let account = self.new_account(new).await?;
        let (login, session) = self.begin_session(&account)?;
        let by = Actor { actor: username, account_id: Some(&account.id), request_id };
        let entry = created(by, &account)?;
        match self.try_apply(vec![put(&account, Expect::Absent)?, session, entry]).await? {
            true => Ok(login),
            false => Err(Error::taken()),
        }
    }

    /// Counts a try to make an account, so that nobody fills the store with them.
    async fn count_registration(&self, address: Option<IpAddr>) -> Result<()> {
        let Some(subject) = address.map(|address| self.throttle.registrations(address)) else {
            return Ok(());
        };
        self.throttle.check(&subject).await?;
        self.throttle.count(&subject).await
    }

    /// Makes an account.
    ///
    /// # Errors
    /// `Invalid` where the username or password cannot be one, `Forbidden` where who asks is no enabled admin,
    /// `Taken` where there is such an account.
    pub async fn create_account(&self, new: NewAccount<'_>, by: Actor<'_>) -> Result<Account> {
        check_new(&new)?;
        let asker = self.asker(by).await?;
        self.check_free(new.username).await?;
        let account = self.new_account(new).await?;
        let make = |by: Actor<'_>, before: Option<&AccountV1>| match before {
            Some(_) => Err(Error::taken()),
            None => Ok(Altered { entry: created(by, &account)?, after: Some(account.clone()) }),
        };
        present(self.alter(&asker, new.username, make).await?)
    }

    /// Up to `limit` accounts by name, beyond the one called `after`.
    pub async fn accounts(&self, after: Option<&str>, limit: usize) -> Result<Page<Account, String>> {
        let (prefix, order) = (ACCOUNTS, ScanOrder::Ascending);
        let listing = Listing { state: &*self.state, prefix, order, after: after.map(account_key) };
        let pick = |_: &str, record: &Record| Ok(Some(Account::from(&decode::<AccountV1>(&record.value)?)));
        listing.page(limit, pick, |account| account.username.to_ascii_lowercase()).await
    }

    /// Changes the role of an account, disables or enables it. What it may do changes at once; disabling ends its
    /// sessions for good, and its keys are refused while it lasts.
    ///
    /// # Errors
    /// `Forbidden` where who asks is no enabled admin, or the own account or the last enabled admin would be
    /// disabled or demoted; `NotFound` where there is no such account.
    pub async fn change_account(
        &self,
        username: &str,
        change: AccountChange,
        by: Actor<'_>,
    ) -> Result<Account> {
        let asker = self.asker(by).await?;
        check_known(username)?;
        let make = |by: Actor<'_>, before: Option<&AccountV1>| changed(by, before, change);
        present(self.alter(&asker, username, make).await?)
    }

    /// Gives an account a password that it has to change, and ends its sessions and keys.
    ///
    /// # Errors
    /// `Invalid` where the password cannot be one, `Forbidden` where who asks is no enabled admin, `NotFound` where
    /// there is no such account.
    pub async fn reset_password(&self, username: &str, new: &str, by: Actor<'_>) -> Result<Account> {
        check_password(new)?;
        let asker = self.asker(by).await?;
        self.read(username).await?.ok_or_else(Error::no_account)?;
        let hash = self.hash(new).await?;
        let make = |by: Actor<'_>, before: Option<&AccountV1>| {
            let after = with_password(before.ok_or_else(Error::no_account)?, &hash);
            let entry = reset_entry(by, &after)?;
            Ok(Altered { after: Some(after), entry })
        };
        present(self.alter(&asker, username, make).await?)
    }

    /// Deletes an account, its sessions and keys.
    ///
    /// # Errors
    /// `Forbidden` where who asks is no enabled admin, or the account is its own or the last enabled admin;
    /// `NotFound` where there is no such account.
    pub async fn delete_account(&self, username: &str, by: Actor<'_>) -> Result<()> {
        let asker = self.asker(by).await?;
        check_known(username)?;
        let make = |by: Actor<'_>, before: Option<&AccountV1>| {
            let before = before.ok_or_else(Error::no_account)?;
            let entry = AuditLog::entry(by, AuditAction::AccountDelete, &before.username, Map::new())?;
            Ok(Altered { after: None, entry })
        };
        self.alter(&asker, username, make).await.map(drop)
    }

    /// Lets the account [`FIRST_ADMIN`] in again, for the operator who is locked out: makes it where it is not
    /// there, makes it an enabled admin with a password that it has to change, and ends its sessions and keys. No
    /// account's right is asked for.
    ///
    /// # Errors
    /// `Invalid` where the password cannot be one.
    pub async fn reset_admin(&self, password: &str, by: Actor<'_>) -> Result<Account> {
        check_password(password)?;
        let (username, role) = (FIRST_ADMIN, Role::Admin);
        let new = NewAccount { username, password, role, must_change_password: true };
        let new = self.new_account(new).await?;
        for _ in 0..TRIES {
            let (after, writes) = self.admin_reset(&new, by).await?;
            if self.try_apply(writes).await? {
                return Ok(Account::from(&after));
            }
        }
        Err(Error::keeps_changing("reset admin"))
    }

    /// The first admin as it is to be, with the password of `new`, and the writes that make it so.
    async fn admin_reset(&self, new: &AccountV1, by: Actor<'_>) -> Result<(AccountV1, Vec<Write>)> {
        let mut writes = vec![
            Write::put(INITIALISED, Expect::Any, "1"),
            Throttle::forget(&self.throttle.logins(FIRST_ADMIN)),
            Throttle::forget(&self.throttle.changes(FIRST_ADMIN)),
        ];
        let Some((before, version)) = self.read(FIRST_ADMIN).await? else {
            writes.extend([put(new, Expect::Absent)?, created(by, new)?]);
            return Ok((new.clone(), writes));
        };
        let after = AccountV1 { admin: true, disabled: false, ..with_password(&before, &new.password) };
        writes.extend([put(&after, Expect::Version(version))?, reset_entry(by, &after)?]);
        writes.extend(self.key_removals(&before.id).await?);
        Ok((after, writes))
    }

    /// Refuses a name that is taken, before the password is hashed for nothing.
    async fn check_free(&self, username: &str) -> Result<()> {
        self.read(username).await?.map_or(Ok(()), |_| Err(Error::taken()))
    }
}

fn check_new(new: &NewAccount<'_>) -> Result<()> {
    check_username(new.username)?;
    check_password(new.password)
}

/// What cannot be a username names no account.
fn check_known(username: &str) -> Result<()> {
    check_username(username).map_err(|_| Error::no_account())
}

fn present(account: Option<Account>) -> Result<Account> {
    account.ok_or_else(Error::no_account)
}

fn changed(by: Actor<'_>, before: Option<&AccountV1>, change: AccountChange) -> Result<Altered> {
    let before = before.ok_or_else(Error::no_account)?;
    let mut after = before.clone();
    let mut changes: Map<String, Value> = Map::new();
    if let Some(role) = change.role.filter(|&role| before.admin != (role == Role::Admin)) {
        after.admin = role == Role::Admin;
        changes.insert("role".to_owned(), role.name().into());
    }
    if let Some(disabled) = change.disabled.filter(|&disabled| before.disabled != disabled) {
        after.disabled = disabled;
        after.epoch += u64::from(disabled);
        changes.insert("disabled".to_owned(), disabled.into());
    }
    let entry = AuditLog::entry(by, AuditAction::AccountChange, &before.username, changes)?;
    Ok(Altered { after: Some(after), entry })
}

/// The account with a password that it has to change, its sessions and keys ended.
fn with_password(before: &AccountV1, hash: &str) -> AccountV1 {
    AccountV1 {
        password: hash.to_owned(),
        must_change_password: true,
        epoch: before.epoch + 1,
        key_epoch: before.key_epoch + 1,
        ..before.clone()
    }
}

fn reset_entry(by: Actor<'_>, after: &AccountV1) -> Result<Write> {
    let detail = detail([("must_change_password", true.into())]);
    AuditLog::entry(by, AuditAction::AccountPassword, &after.username, detail)
}
