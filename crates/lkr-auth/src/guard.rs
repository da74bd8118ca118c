//! Changes of accounts by those who administer them. Each is one step of the store that also holds what makes it
//! lawful: who asks is an enabled admin still, and an enabled admin is left.

use lkr_state::{Expect, Record, ScanOrder, Write};

use crate::{
    Account, Actor, Auth, Error, Result,
    auth::{TRIES, put},
    page::Listing,
    records::{ACCOUNTS, ADMINS, AccountV1, account_key, decode},
};

/// Who asks for changes of accounts.
pub(crate) struct Asker<'a> {
    by: Actor<'a>,
    /// The id of its account; `None` where it is a word of the program that embeds this one.
    account_id: Option<String>,
}

/// What a change makes of an account.
pub(crate) struct Altered {
    /// The account as it is to be; `None` where it is to be no more.
    pub(crate) after: Option<AccountV1>,
    /// The audit entry.
    pub(crate) entry: Write,
}

/// What was seen before a change, all at one time.
struct Seen {
    guard: Expect,
    /// The check that who asks is the same still.
    asker: Option<Write>,
    before: Option<(AccountV1, u64)>,
}

impl Auth {
    /// Who asks, where that may administer accounts.
    ///
    /// # Errors
    /// `Forbidden` where it is an account that is no enabled admin.
    pub(crate) async fn asker<'a>(&self, by: Actor<'a>) -> Result<Asker<'a>> {
        let found = self.read(by.actor).await?.map(|(account, _)| account);
        if by.account_id.is_some_and(|id| found.as_ref().is_none_or(|account| account.id != id)) {
            return Err(no_admin());
        }
        if let Some(account) = &found {
            check_admin(account)?;
        }
        Ok(Asker { by, account_id: found.map(|account| account.id) })
    }

    /// Does what `change` makes of the account `username`, which must be a possible name; answers it as it is then.
    /// `change` is asked anew where another change comes first. What changes nothing is not written.
    pub(crate) async fn alter(
        &self,
        asker: &Asker<'_>,
        username: &str,
        change: impl Fn(Actor<'_>, Option<&AccountV1>) -> Result<Altered>,
    ) -> Result<Option<Account>> {
        for _ in 0..TRIES {
            let seen = self.look(asker, username).await?;
            let before = seen.before.as_ref().map(|(account, _)| account);
            let altered = change(asker.by, before)?;
            let after = altered.after.as_ref().map(Account::from);
            if before == altered.after.as_ref() {
                return Ok(after);
            }
            let writes = self.step(asker, seen, altered).await?;
            if self.try_apply(writes).await? {
                return Ok(after);
            }
        }
        Err(Error::keeps_changing("change account"))
    }

    /// Reads everything that a change depends on.
    async fn look(&self, asker: &Asker<'_>, username: &str) -> Result<Seen> {
        let mut keys = vec![ADMINS.to_owned(), account_key(username)];
        keys.extend(asker.account_id.iter().map(|_| account_key(asker.by.actor)));
        let mut records = self.state.get_many(&keys).await?.into_iter();
        let guard = expect_same(records.next().flatten().as_ref());
        let before = records.next().flatten();
        let before =
            before.map(|record| Ok::<_, Error>((decode(&record.value)?, record.version))).transpose()?;
        let asker = asker.check(username, records.next().flatten())?;
        Ok(Seen { guard, asker, before })
    }

    /// The writes of a change.
    async fn step(&self, asker: &Asker<'_>, seen: Seen, altered: Altered) -> Result<Vec<Write>> {
        let Seen { guard, asker: same_asker, before } = seen;
        let after = altered.after.as_ref();
        let mut writes = vec![altered.entry];
        writes.extend(same_asker);
        let expect = before.as_ref().map_or(Expect::Absent, |(_, version)| Expect::Version(*version));
        if let Some((before, _)) = &before {
            refuse_own(asker.by, before, after)?;
            if before.is_enabled_admin() && !after.is_some_and(AccountV1::is_enabled_admin) {
                self.refuse_last_admin(before).await?;
                writes.push(Write::put(ADMINS, guard, "1"));
            }
            if after.is_none_or(|after| after.key_epoch != before.key_epoch) {
                writes.extend(self.key_removals(&before.id).await?);
            }
        }
        match (after, &before) {
            (Some(after), _) => writes.push(put(after, expect)?),
            (None, Some((before, _))) => writes.push(Write::delete(account_key(&before.username), expect)),
            (None, None) => {}
        }
        Ok(writes)
    }

    /// Reads all accounts, after the guard was read: the step that takes one of them away writes the guard.
    async fn refuse_last_admin(&self, leaving: &AccountV1) -> Result<()> {
        let own_key = account_key(&leaving.username);
        let other_admin = |key: &str, record: &Record| {
            let account: AccountV1 = decode(&record.value)?;
            Ok((key != own_key && account.is_enabled_admin()).then_some(()))
        };
        let (prefix, order) = (ACCOUNTS, ScanOrder::Ascending);
        let accounts = Listing { state: &*self.state, prefix, order, after: None };
        if accounts.first(1, other_admin).await?.is_empty() {
            return Err(Error::forbidden("this is the last admin who can log in"));
        }
        Ok(())
    }
}

impl Asker<'_> {
    /// The check of a step that who asks has not changed since `record` was read. The step checks the account that
    /// it changes by itself.
    fn check(&self, changed: &str, record: Option<Record>) -> Result<Option<Write>> {
        let Some(id) = &self.account_id else { return Ok(None) };
        let record = record.ok_or_else(no_admin)?;
        let account: AccountV1 = decode(&record.value)?;
        if account.id != *id {
            return Err(no_admin());
        }
        check_admin(&account)?;
        let own = changed.eq_ignore_ascii_case(self.by.actor);
        Ok((!own).then(|| Write::check(account_key(self.by.actor), Expect::Version(record.version))))
    }
}

fn check_admin(account: &AccountV1) -> Result<()> {
    if account.is_enabled_admin() { Ok(()) } else { Err(no_admin()) }
}

fn no_admin() -> Error {
    Error::forbidden("this needs an enabled account of role admin")
}

/// Nobody shuts the door on themselves: a slip of the hand would be hard to undo.
fn refuse_own(by: Actor<'_>, before: &AccountV1, after: Option<&AccountV1>) -> Result<()> {
    if !by.actor.eq_ignore_ascii_case(&before.username) {
        return Ok(());
    }
    let Some(after) = after else { return Err(Error::forbidden("the own account cannot be deleted")) };
    if after.disabled && !before.disabled {
        return Err(Error::forbidden("the own account cannot be disabled"));
    }
    if before.admin && !after.admin {
        return Err(Error::forbidden("the own account cannot be demoted"));
    }
    Ok(())
}

fn expect_same(record: Option<&Record>) -> Expect {
    record.map_or(Expect::Absent, |record| Expect::Version(record.version))
}
