use lkr_state::{Expect, Write, retry_on_conflict};
use serde_json::Map;
use time::OffsetDateTime;

use crate::{
    Actor, AuditAction, AuditLog, Auth, Error, ErrorKind, Login, Result,
    auth::put,
    check_password,
    hasher::HashSlot,
    records::AccountV1,
    throttle::{Throttle, ThrottleSubject},
};

impl Auth {
    /// Changes the password of an account, ends all its sessions and starts a new one, in one step. Its keys stay.
    ///
    /// # Errors
    /// `Invalid` if the new password is not allowed, or if the account must change its password and the new one is the
    /// same; `Unauthenticated` if the current password is wrong. `RateLimited` after too many failures, so that a stolen
    /// token cannot be used to guess the password.
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
        let _guard = self.throttle.lock(&subject).await;
        let slot = self.hasher.acquire().await?;
        self.throttle.check(&subject).await?;
        let (account, _) = self.read_enabled(username).await?;
        account.check_actor(by)?;
        self.verify_current(&slot, &account, current, &subject).await?;
        if account.must_change_password && slot.verify(new, Some(&account.password)).await?.is_match {
            return Err(Error::invalid("new password", "must differ from the current password"));
        }
        let hash = slot.hash(new).await?;
        drop(slot);
        self.store_password(&account, &hash, by, &Throttle::reset(&subject)).await
    }

    /// The current account, if it is enabled.
    async fn read_enabled(&self, username: &str) -> Result<(AccountV1, u64)> {
        let found = self.read(username).await?.filter(|(account, _)| !account.disabled);
        found.ok_or_else(|| Error::unauthenticated("the account is disabled or no longer exists"))
    }

    async fn verify_current(
        &self,
        slot: &HashSlot,
        account: &AccountV1,
        current: &str,
        subject: &ThrottleSubject,
    ) -> Result<()> {
        if slot.verify(current, Some(&account.password)).await?.is_match {
            return Ok(());
        }
        self.throttle.count(subject).await?;
        Err(Error::unauthenticated("the current password is wrong"))
    }

    /// Replaces the verified hash by the new one. If the password was changed meanwhile, that change wins.
    async fn store_password(
        &self,
        verified: &AccountV1,
        hash: &str,
        by: Actor<'_>,
        throttle_reset: &Write,
    ) -> Result<Login> {
        retry_on_conflict(&*self.state, "change password", || async {
            let (mut account, version) = self.read_enabled(&verified.username).await?;
            if account.id != verified.id || account.password != verified.password {
                let message = "the password was changed by another request";
                return Err(Error::new(ErrorKind::Conflict, "change password", message));
            }
            account.password = hash.to_owned();
            account.password_at = Some(OffsetDateTime::now_utc());
            account.must_change_password = false;
            account.epoch += 1;
            let (login, session) = self.start_session(&account)?;
            let entry = AuditLog::entry(by, AuditAction::AccountPassword, &account.username, Map::new())?;
            let stored = put(&account, Expect::Version(version))?;
            self.state.apply(vec![stored, session, entry, throttle_reset.clone()]).await?;
            Ok(login)
        })
        .await
    }
}
