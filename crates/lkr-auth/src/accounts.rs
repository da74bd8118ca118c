use std::net::IpAddr;

use lkr_state::{Expect, Record, ScanOrder, Write, retry_on_conflict};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{
    Account, AccountChange, Actor, AuditAction, AuditLog, Auth, Error, FIRST_ADMIN, Login, LoginAttempt,
    NewAccount, Page, Result, Role,
    admin_change::AccountUpdate,
    audit::detail,
    auth::{created, put},
    check_password, check_username,
    page::RecordListing,
    records::{ACCOUNTS, AccountV1, INITIALISED, account_key, decode},
};

impl Auth {
    /// Creates an account with the role user, and starts its first session.
    ///
    /// # Errors
    /// `Invalid` if the username or the password is not allowed, `Taken` if the username exists. `RateLimited` after as
    /// many registrations from one address as failed logins are allowed.
    pub async fn register(&self, attempt: LoginAttempt<'_>) -> Result<Login> {
        let LoginAttempt { username, password, address, request_id } = attempt;
        let new = NewAccount { username, password, role: Role::User, must_change_password: false };
        check_new(&new)?;
        // Attempts with a taken name count too. Otherwise, existing names could be found by trying without limit.
        self.count_registration(address).await?;
        self.check_free(username).await?;
        let account = self.new_account(new).await?;
        let (login, session) = self.start_session(&account)?;
        let by = Actor { actor: username, account_id: Some(&account.id), request_id };
        let mut writes = vec![put(&account, Expect::Absent)?, session, created(by, &account)?];
        writes.extend(self.throttle.resets(username));
        match self.try_apply(writes).await? {
            true => Ok(login),
            false => Err(Error::taken()),
        }
    }

    /// Counts a registration, so that one address cannot fill the store with accounts.
    async fn count_registration(&self, address: Option<IpAddr>) -> Result<()> {
        let Some(subject) = address.map(|address| self.throttle.registrations(address)) else {
            return Ok(());
        };
        self.throttle.check(&subject).await?;
        self.throttle.count(&subject).await
    }

    /// Creates an account. Failed logins with its name do not count any more.
    ///
    /// # Errors
    /// `Invalid` if the username or the password is not allowed, `Forbidden` if the actor is not an enabled admin,
    /// `Taken` if the username exists.
    pub async fn create_account(&self, new: NewAccount<'_>, by: Actor<'_>) -> Result<Account> {
        check_new(&new)?;
        let actor = self.authorize(by).await?;
        self.check_free(new.username).await?;
        let account = self.new_account(new).await?;
        let update = |by: Actor<'_>, before: Option<&AccountV1>| match before {
            Some(_) => Err(Error::taken()),
            None => Ok(AccountUpdate { entry: created(by, &account)?, after: Some(account.clone()) }),
        };
        found(self.update_account(&actor, new.username, update).await?)
    }

    /// Up to `limit` accounts in the order of their names, after the name `after`.
    pub async fn accounts(&self, after: Option<&str>, limit: usize) -> Result<Page<Account, String>> {
        let (prefix, order) = (ACCOUNTS, ScanOrder::Ascending);
        let listing = RecordListing { state: &*self.state, prefix, order, after: after.map(account_key) };
        let pick = |_: &str, record: &Record| Ok(Some(Account::from(&decode::<AccountV1>(&record.value)?)));
        listing.page(limit, pick, |account| account.username.to_ascii_lowercase()).await
    }

    /// Changes the role of an account, disables or enables it. The change takes effect at once. Disabling ends its
    /// sessions for good; its keys are refused as long as it is disabled. Once it is enabled, its failed logins do not
    /// count any more.
    ///
    /// # Errors
    /// `Forbidden` if the actor is not an enabled admin, or if the change would disable or demote the actor's own account
    /// or the last enabled admin; `NotFound` if there is no such account.
    pub async fn change_account(
        &self,
        username: &str,
        change: AccountChange,
        by: Actor<'_>,
    ) -> Result<Account> {
        let actor = self.authorize(by).await?;
        check_exists(username)?;
        let update = |by: Actor<'_>, before: Option<&AccountV1>| changed(by, before, change);
        found(self.update_account(&actor, username, update).await?)
    }

    /// Sets a password that the account must change, and ends its sessions and keys. Its failed logins do not count any
    /// more.
    ///
    /// # Errors
    /// `Invalid` if the password is not allowed, `Forbidden` if the actor is not an enabled admin, `NotFound` if there
    /// is no such account.
    pub async fn reset_password(&self, username: &str, new: &str, by: Actor<'_>) -> Result<Account> {
        check_password(new)?;
        let actor = self.authorize(by).await?;
        self.read(username).await?.ok_or_else(Error::no_account)?;
        let hash = self.hash(new).await?;
        let update = |by: Actor<'_>, before: Option<&AccountV1>| {
            let after = with_password(before.ok_or_else(Error::no_account)?, &hash);
            let entry = reset_entry(by, &after)?;
            Ok(AccountUpdate { after: Some(after), entry })
        };
        found(self.update_account(&actor, username, update).await?)
    }

    /// Deletes an account, its sessions and keys.
    ///
    /// # Errors
    /// `Forbidden` if the actor is not an enabled admin, or if the account is the actor's own or the last enabled admin;
    /// `NotFound` if there is no such account.
    pub async fn delete_account(&self, username: &str, by: Actor<'_>) -> Result<()> {
        let actor = self.authorize(by).await?;
        check_exists(username)?;
        let update = |by: Actor<'_>, before: Option<&AccountV1>| {
            let before = before.ok_or_else(Error::no_account)?;
            let entry = AuditLog::entry(by, AuditAction::AccountDelete, &before.username, Map::new())?;
            Ok(AccountUpdate { after: None, entry })
        };
        self.update_account(&actor, username, update).await.map(drop)
    }

    /// Restores access to the account [`FIRST_ADMIN`] for an operator who is locked out: creates it if it is missing,
    /// makes it an enabled admin with a password that it must change, and ends its sessions and keys. Needs no rights.
    ///
    /// # Errors
    /// `Invalid` if the password is not allowed.
    pub async fn reset_admin(&self, password: &str, by: Actor<'_>) -> Result<Account> {
        check_password(password)?;
        let (username, role) = (FIRST_ADMIN, Role::Admin);
        let new = NewAccount { username, password, role, must_change_password: true };
        let new = self.new_account(new).await?;
        retry_on_conflict(&*self.state, "reset admin", || async {
            let (after, writes) = self.admin_reset(&new, by).await?;
            self.state.apply(writes).await?;
            Ok(Account::from(&after))
        })
        .await
    }

    /// The first admin after the reset, with the password of `new`, and the writes of the reset.
    async fn admin_reset(&self, new: &AccountV1, by: Actor<'_>) -> Result<(AccountV1, Vec<Write>)> {
        let mut writes = vec![Write::put(INITIALISED, Expect::Any, "1")];
        writes.extend(self.throttle.resets(FIRST_ADMIN));
        let Some((before, version)) = self.read(FIRST_ADMIN).await? else {
            writes.extend([put(new, Expect::Absent)?, created(by, new)?]);
            return Ok((new.clone(), writes));
        };
        let after = AccountV1 { admin: true, disabled: false, ..with_password(&before, &new.password) };
        writes.extend([put(&after, Expect::Version(version))?, reset_entry(by, &after)?]);
        writes.extend(self.key_removals(&before.id).await?);
        Ok((after, writes))
    }

    /// Refuses a taken name before the password is hashed.
    async fn check_free(&self, username: &str) -> Result<()> {
        self.read(username).await?.map_or(Ok(()), |_| Err(Error::taken()))
    }
}

fn check_new(new: &NewAccount<'_>) -> Result<()> {
    check_username(new.username)?;
    check_password(new.password)
}

/// A name that is not a valid username names no account.
fn check_exists(username: &str) -> Result<()> {
    check_username(username).map_err(|_| Error::no_account())
}

fn found(account: Option<Account>) -> Result<Account> {
    account.ok_or_else(Error::no_account)
}

fn changed(by: Actor<'_>, before: Option<&AccountV1>, change: AccountChange) -> Result<AccountUpdate> {
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
    Ok(AccountUpdate { after: Some(after), entry })
}

/// The account with a password that it must change. Its sessions and keys have ended.
fn with_password(before: &AccountV1, hash: &str) -> AccountV1 {
    AccountV1 {
        password: hash.to_owned(),
        must_change_password: true,
        epoch: before.epoch + 1,
        key_epoch: before.key_epoch + 1,
        password_at: Some(OffsetDateTime::now_utc()),
        ..before.clone()
    }
}

fn reset_entry(by: Actor<'_>, after: &AccountV1) -> Result<Write> {
    let detail = detail([("must_change_password", true.into())]);
    AuditLog::entry(by, AuditAction::AccountPassword, &after.username, detail)
}
