use lkr_state::{Expect, Write};
use serde_json::Map;

use crate::{
    Actor, AuditAction, AuditLog, Auth, Error, ErrorKind, Login, Result,
    auth::{TRIES, put},
    check_password,
    hasher::Slot,
    records::AccountV1,
    throttle::{Subject, Throttle},
};

impl Auth {
    /// Changes the password of an account, ends all its sessions and begins a new one, in one step. Its keys stay.
    ///
    /// # Errors
    /// `Invalid` where the new password cannot be one, or an account that has to change it keeps it;
    /// `Unauthenticated` where the current one is another. `RateLimited` after too many of these, so that who has
    /// come by a token cannot guess the password.
    pub async fn change_password(
        &self,
        username: &str,
        current: &str,
        new: &str,
        by: Actor<'_>,
    ) -> Result<Login> {
        check_password(new)?;
        let subject = self.throttle.changes(username);
        self.throttle.check(&subject).await?;
        let _turn = self.throttle.turn(&subject).await;
        let slot = self.hasher.slot().await?;
        self.throttle.check(&subject).await?;
        let (account, _) = self.enabled(username).await?;
        by.check_same(&account)?;
        self.verify_current(&slot, &account, current, &subject).await?;
        if account.must_change_password && slot.verify(new, Some(&account.password)).await?.matches {
            return Err(Error::invalid("new password", "is the one that has to be changed"));
        }
        let hash = slot.hash(new).await?;
        drop(slot);
        self.store_password(&account, &hash, by, &Throttle::forget(&subject)).await
    }

    /// The account as it is now, where its owner may do anything.
    async fn enabled(&self, username: &str) -> Result<(AccountV1, u64)> {
        let found = self.read(username).await?.filter(|(account, _)| !account.disabled);
        found.ok_or_else(|| Error::unauthenticated("the account is disabled or not there any more"))
    }

    async fn verify_current(
        &self,
        slot: &Slot,
        account: &AccountV1,
        current: &str,
        subject: &Subject,
    ) -> Result<()> {
        if slot.verify(current, Some(&account.password)).await?.matches {
            return Ok(());
        }
        self.throttle.count(subject).await?;
        Err(Error::unauthenticated("the current password is wrong"))
    }

    /// Puts the new hash in the place of the one that was verified; another password has precedence.
    async fn store_password(
        &self,
        verified: &AccountV1,
        hash: &str,
        by: Actor<'_>,
        forget: &Write,
    ) -> Result<Login> {
        for _ in 0..TRIES {
            let (mut account, version) = self.enabled(&verified.username).await?;
            if account.id != verified.id || account.password != verified.password {
                let message = "the password was changed meanwhile";
                return Err(Error::new(ErrorKind::Conflict, "change password", message));
            }
            account.password = hash.to_owned();
            account.must_change_password = false;
            account.epoch += 1;
            let (login, session) = self.begin_session(&account)?;
            let entry = AuditLog::entry(by, AuditAction::AccountPassword, &account.username, Map::new())?;
            let stored = put(&account, Expect::Version(version))?;
            if self.try_apply(vec![stored, session, entry, forget.clone()]).await? {
                return Ok(login);
            }
        }
        Err(Error::keeps_changing("change password"))
    }
}
