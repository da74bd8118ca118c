//! Changes of accounts by admins. Each change is one step of the store that also checks its preconditions: the actor is
//! still an enabled admin, and at least one enabled admin remains.

use lkr_state::{Expect, Record, ScanOrder, Write, retry_on_conflict};

use crate::{
    Account, Actor, Auth, Error, Result,
    auth::put,
    page::RecordListing,
    records::{ACCOUNTS, ADMINS, AccountV1, account_key, decode},
};

/// An actor who may administer accounts.
pub(crate) struct AuthorizedActor<'a> {
    by: Actor<'a>,
    /// The id of the account; `None` if the actor is the embedding program.
    account_id: Option<String>,
}

/// The result of a change.
pub(crate) struct AccountUpdate {
    /// The new account; `None` if it is deleted.
    pub(crate) after: Option<AccountV1>,
    /// The audit entry.
    pub(crate) entry: Write,
}

/// The records that a change depends on, read at one time.
struct ChangeSnapshot {
    /// The expectation of the record [`ADMINS`].
    admins: Expect,
    /// The check that the actor is unchanged.
    actor_check: Option<Write>,
    before: Option<(AccountV1, u64)>,
}

impl Auth {
    /// Checks that the actor may administer accounts.
    ///
    /// # Errors
    /// `Forbidden` if the actor is an account that is not an enabled admin.
    pub(crate) async fn authorize<'a>(&self, by: Actor<'a>) -> Result<AuthorizedActor<'a>> {
        let found = self.read(by.actor).await?.map(|(account, _)| account);
        if by.account_id.is_some_and(|id| found.as_ref().is_none_or(|account| account.id != id)) {
            return Err(not_an_admin());
        }
        if let Some(account) = &found {
            check_admin(account)?;
        }
        Ok(AuthorizedActor { by, account_id: found.map(|account| account.id) })
    }

    /// Replaces the account `username`, which must be a valid name, by the result of `change`, and returns it. After a
    /// conflict, `change` runs again. Without a difference, nothing is written.
    pub(crate) async fn update_account(
        &self,
        actor: &AuthorizedActor<'_>,
        username: &str,
        change: impl Fn(Actor<'_>, Option<&AccountV1>) -> Result<AccountUpdate>,
    ) -> Result<Option<Account>> {
        let _guard = self.changing.lock(username.to_ascii_lowercase()).await;
        retry_on_conflict(&*self.state, "change account", || async {
            let snapshot = self.read_snapshot(actor, username).await?;
            let before = snapshot.before.as_ref().map(|(account, _)| account);
            let update = change(actor.by, before)?;
            let after = update.after.as_ref().map(Account::from);
            if before == update.after.as_ref() {
                return Ok(after);
            }
            let writes = self.step(actor, snapshot, update).await?;
            self.state.apply(writes).await?;
            Ok(after)
        })
        .await
    }

    /// Reads all records that a change depends on.
    async fn read_snapshot(&self, actor: &AuthorizedActor<'_>, username: &str) -> Result<ChangeSnapshot> {
        let mut keys = vec![ADMINS.to_owned(), account_key(username)];
        keys.extend(actor.account_id.iter().map(|_| account_key(actor.by.actor)));
        let mut records = self.state.get_many(&keys).await?.into_iter();
        let admins = expect_unchanged(records.next().flatten().as_ref());
        let before = records.next().flatten();
        let before =
            before.map(|record| Ok::<_, Error>((decode(&record.value)?, record.version))).transpose()?;
        let actor_check = actor.check(username, records.next().flatten())?;
        Ok(ChangeSnapshot { admins, actor_check, before })
    }

    /// The writes of a change.
    async fn step(
        &self,
        actor: &AuthorizedActor<'_>,
        snapshot: ChangeSnapshot,
        update: AccountUpdate,
    ) -> Result<Vec<Write>> {
        let ChangeSnapshot { admins, actor_check, before } = snapshot;
        let after = update.after.as_ref();
        let mut writes = vec![update.entry];
        writes.extend(actor_check);
        let expect = before.as_ref().map_or(Expect::Absent, |(_, version)| Expect::Version(*version));
        if let Some((before, _)) = &before {
            refuse_own(actor.by, before, after)?;
            if before.is_enabled_admin() && !after.is_some_and(AccountV1::is_enabled_admin) {
                self.refuse_last_admin(before).await?;
                writes.push(Write::put(ADMINS, admins, "1"));
            }
            if after.is_none_or(|after| after.key_epoch != before.key_epoch) {
                writes.extend(self.key_removals(&before.id).await?);
            }
        }
        if let Some(after) = after.filter(|after| gives_access(before.as_ref(), after)) {
            writes.extend(self.throttle.resets(&after.username));
        }
        match (after, &before) {
            (Some(after), _) => writes.push(put(after, expect)?),
            (None, Some((before, _))) => writes.push(Write::delete(account_key(&before.username), expect)),
            (None, None) => {}
        }
        Ok(writes)
    }

    /// Refuses to remove the last enabled admin. The accounts are read after the record [`ADMINS`], which every step that
    /// removes an admin writes. So two such steps conflict.
    async fn refuse_last_admin(&self, removed: &AccountV1) -> Result<()> {
        let own_key = account_key(&removed.username);
        let other_admin = |key: &str, record: &Record| {
            let account: AccountV1 = decode(&record.value)?;
            Ok((key != own_key && account.is_enabled_admin()).then_some(()))
        };
        let (prefix, order) = (ACCOUNTS, ScanOrder::Ascending);
        let accounts = RecordListing { state: &*self.state, prefix, order, after: None };
        if accounts.first(1, other_admin).await?.is_empty() {
            return Err(Error::forbidden("the last enabled admin cannot be removed"));
        }
        Ok(())
    }
}

impl AuthorizedActor<'_> {
    /// The write that checks that the actor's account is unchanged since `record` was read. It is not needed if the step
    /// changes that account, because the change expects its version.
    fn check(&self, changed: &str, record: Option<Record>) -> Result<Option<Write>> {
        let Some(id) = &self.account_id else { return Ok(None) };
        let record = record.ok_or_else(not_an_admin)?;
        let account: AccountV1 = decode(&record.value)?;
        if account.id != *id {
            return Err(not_an_admin());
        }
        check_admin(&account)?;
        let is_own = changed.eq_ignore_ascii_case(self.by.actor);
        Ok((!is_own).then(|| Write::check(account_key(self.by.actor), Expect::Version(record.version))))
    }
}

fn check_admin(account: &AccountV1) -> Result<()> {
    if account.is_enabled_admin() { Ok(()) } else { Err(not_an_admin()) }
}

/// Whether a change lets the owner log in who could not before: with a new account or password, or after it was disabled.
/// Those who tried in vain may be locked out.
fn gives_access(before: Option<&(AccountV1, u64)>, after: &AccountV1) -> bool {
    before.is_none_or(|(before, _)| before.password != after.password || (before.disabled && !after.disabled))
}

fn not_an_admin() -> Error {
    Error::forbidden("only an enabled admin may do this")
}

/// Refuses changes that lock the actor out, because a mistake would be hard to undo.
fn refuse_own(by: Actor<'_>, before: &AccountV1, after: Option<&AccountV1>) -> Result<()> {
    if !by.actor.eq_ignore_ascii_case(&before.username) {
        return Ok(());
    }
    let Some(after) = after else { return Err(Error::forbidden("your own account cannot be deleted")) };
    if after.disabled && !before.disabled {
        return Err(Error::forbidden("your own account cannot be disabled"));
    }
    if before.admin && !after.admin {
        return Err(Error::forbidden("your own account cannot be demoted"));
    }
    Ok(())
}

fn expect_unchanged(record: Option<&Record>) -> Expect {
    record.map_or(Expect::Absent, |record| Expect::Version(record.version))
}
