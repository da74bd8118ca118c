use std::{fmt, net::IpAddr};

use lkr_state::{Expect, Write};

use crate::{
    Auth, Error, ErrorKind, Login, Result,
    auth::put,
    hasher::Slot,
    records::AccountV1,
    throttle::{Subject, Throttle},
};

/// A try to log in.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// The name that was given.
    pub username: &'a str,
    /// The password that was given.
    pub password: &'a str,
    /// Where it came from; failures are not counted for an address that is not known.
    pub address: Option<IpAddr>,
    /// In which request.
    pub request_id: &'a str,
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The username is left out too: people type passwords into its field.
        f.debug_struct("Attempt")
            .field("address", &self.address)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Why there is no session.
struct Failure {
    /// For the log, where the login was refused.
    reason: Option<&'static str>,
    error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { reason: None, error }
    }
}

impl Failure {
    fn refused(reason: &'static str, message: &'static str) -> Self {
        Self { reason: Some(reason), error: Error::unauthenticated(message) }
    }

    /// The failure of a look at a count.
    fn of_count(error: Error, throttled: &'static str) -> Self {
        let reason = matches!(error.kind(), ErrorKind::RateLimited { .. }).then_some(throttled);
        Self { reason, error }
    }
}

/// For whom a failed login counts.
struct Counted {
    account: Subject,
    address: Option<Subject>,
}

impl Auth {
    /// Begins a session.
    ///
    /// # Errors
    /// `Unauthenticated`, in the same words after the same work, where there is no such account or the password is
    /// another; also where the account is disabled. `RateLimited` after too many of these; then no password is
    /// looked at, the right one neither. `Overloaded` where too many passwords wait to be hashed.
    pub async fn login(&self, attempt: Attempt<'_>) -> Result<Login> {
        match self.try_login(&attempt).await {
            Ok(login) => Ok(login),
            Err(Failure { reason, error }) => {
                if let Some(reason) = reason {
                    self.log_refusal(&attempt, reason).await;
                }
                Err(error)
            }
        }
    }

    async fn try_login(&self, attempt: &Attempt<'_>) -> Result<Login, Failure> {
        let counted = Counted {
            account: self.throttle.logins(attempt.username),
            address: attempt.address.map(|address| self.throttle.address(address)),
        };
        self.check_counts(&counted).await?;
        let _turn = self.throttle.turn(&counted.account).await;
        let slot = self.hasher.slot().await?;
        // Those who were before this one may have used up the tries. The slot is held until a failure is counted,
        // so that no more than those who hash at once slip past the limit of an address.
        self.check_counts(&counted).await?;
        match self.verify_login(&slot, attempt).await {
            Ok(account) => Ok(self.begin_login(&account, &counted).await?),
            Err(failure) => {
                if failure.reason.is_some() {
                    self.count_failure(&counted).await?;
                }
                Err(failure)
            }
        }
    }

    /// The account that an attempt may log in to.
    async fn verify_login(&self, slot: &Slot, attempt: &Attempt<'_>) -> Result<AccountV1, Failure> {
        let found = self.read(attempt.username).await?;
        let stored = found.as_ref().map(|(account, _)| account.password.as_str());
        let verified = slot.verify(attempt.password, stored).await?;
        let wrong = |reason| Failure::refused(reason, "the username or the password is wrong");
        let (account, version) = found.ok_or_else(|| wrong("unknown account"))?;
        if !verified.matches {
            return Err(wrong("wrong password"));
        }
        if account.disabled {
            return Err(Failure::refused("disabled", "the account is disabled"));
        }
        if verified.outdated {
            self.renew_hash(slot, account.clone(), version, attempt.password).await?;
        }
        Ok(account)
    }

    async fn check_counts(&self, counted: &Counted) -> Result<(), Failure> {
        let checked = self.throttle.check(&counted.account).await;
        checked.map_err(|error| Failure::of_count(error, "throttled account"))?;
        if let Some(address) = &counted.address {
            let checked = self.throttle.check(address).await;
            checked.map_err(|error| Failure::of_count(error, "throttled address"))?;
        }
        Ok(())
    }

    async fn count_failure(&self, counted: &Counted) -> Result<()> {
        self.throttle.count(&counted.account).await?;
        match &counted.address {
            Some(address) => self.throttle.count(address).await,
            None => Ok(()),
        }
    }

    /// Begins the session, and forgets the failures of the account in the same step.
    async fn begin_login(&self, account: &AccountV1, counted: &Counted) -> Result<Login> {
        let (login, session) = self.begin_session(account)?;
        self.state.apply(vec![session, Throttle::forget(&counted.account)]).await?;
        Ok(login)
    }

    /// Stores the password under the iterations in force. Another change of the account has precedence.
    async fn renew_hash(
        &self,
        slot: &Slot,
        mut account: AccountV1,
        version: u64,
        password: &str,
    ) -> Result<()> {
        account.password = slot.hash(password).await?;
        let renewed: Write = put(&account, Expect::Version(version))?;
        self.try_apply(vec![renewed]).await.map(drop)
    }

    /// Notes a refused login, under the name of the account where there is one: people type passwords into the
    /// field of the username.
    async fn log_refusal(&self, attempt: &Attempt<'_>, reason: &'static str) {
        let found = self.read(attempt.username).await.ok().flatten();
        tracing::warn!(
            username = found.as_ref().map_or("unknown", |(account, _)| account.username.as_str()),
            address = attempt.address.map(tracing::field::display),
            reason,
            request_id = attempt.request_id,
            "a login was refused"
        );
    }
}
