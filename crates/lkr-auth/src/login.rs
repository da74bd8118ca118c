use std::{fmt, net::IpAddr};

use lkr_state::{Expect, Write};
use tokio::runtime::Handle;

use crate::{
    Auth, Error, ErrorKind, Login, Result,
    auth::put,
    hasher::HashSlot,
    records::AccountV1,
    throttle::{Throttle, ThrottleSubject},
};

/// An attempt to log in or to register.
#[derive(Clone, Copy)]
pub struct LoginAttempt<'a> {
    /// The given username.
    pub username: &'a str,
    /// The given password.
    pub password: &'a str,
    /// The client's address. Without one, failures are counted for the account only.
    pub address: Option<IpAddr>,
    /// The id of the request.
    pub request_id: &'a str,
}

impl fmt::Debug for LoginAttempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The username is left out too, because people type passwords into its field.
        f.debug_struct("LoginAttempt")
            .field("address", &self.address)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Why a login failed.
struct LoginFailure {
    /// The reason in the log; `None` if the login failed for a technical reason.
    reason: Option<&'static str>,
    error: Error,
}

impl From<Error> for LoginFailure {
    fn from(error: Error) -> Self {
        Self { reason: None, error }
    }
}

impl LoginFailure {
    fn refused(reason: &'static str, message: &'static str) -> Self {
        Self { reason: Some(reason), error: Error::unauthenticated(message) }
    }

    /// The failure of a throttle check.
    fn from_throttle(error: Error, throttled: &'static str) -> Self {
        let reason = matches!(error.kind(), ErrorKind::RateLimited { .. }).then_some(throttled);
        Self { reason, error }
    }
}

/// The subjects that a failed login counts for.
#[derive(Clone)]
struct LoginSubjects {
    account: ThrottleSubject,
    address: Option<ThrottleSubject>,
}

/// An attempt whose password is being compared. The comparison goes on if the client goes away before its answer, so the attempt counts
/// as a failure then: otherwise somebody who never waits for answers could keep all processors busy.
struct Unanswered<'a> {
    auth: &'a Auth,
    subjects: Option<LoginSubjects>,
}

impl Unanswered<'_> {
    fn answer(mut self) {
        self.subjects = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let (Some(subjects), Ok(runtime)) = (self.subjects.take(), Handle::try_current()) {
            let auth = self.auth.clone();
            runtime.spawn(async move {
                if let Err(error) = auth.count_failure(&subjects).await {
                    tracing::warn!(%error, "cannot count a login whose client went away");
                }
            });
        }
    }
}

impl Auth {
    /// Starts a session.
    ///
    /// # Errors
    /// `Unauthenticated` if there is no such account or the password is wrong, with the same message after the same work;
    /// also if the account is disabled. `RateLimited` after too many failures; then even the right password is refused.
    /// `Overloaded` if too many passwords wait to be hashed.
    /// If the future is dropped while the password is compared, the attempt counts as a failure.
    pub async fn login(&self, attempt: LoginAttempt<'_>) -> Result<Login> {
        match self.try_login(&attempt).await {
            Ok(login) => Ok(login),
            Err(LoginFailure { reason, error }) => {
                if let Some(reason) = reason {
                    self.log_refusal(&attempt, reason).await;
                }
                Err(error)
            }
        }
    }

    async fn try_login(&self, attempt: &LoginAttempt<'_>) -> Result<Login, LoginFailure> {
        let subjects = LoginSubjects {
            account: self.throttle.logins(attempt.username),
            address: attempt.address.map(|address| self.throttle.address(address)),
        };
        self.check_counts(&subjects).await?;
        let _guard = self.throttle.lock(&subjects.account).await;
        let slot = self.hasher.acquire().await?;
        // Earlier attempts may have reached the limit meanwhile. The slot is held until a failure is counted, so an
        // address exceeds its limit by at most the number of concurrent hashes.
        self.check_counts(&subjects).await?;
        let unanswered = Unanswered { auth: self, subjects: Some(subjects.clone()) };
        let result = self.log_in_counted(&slot, attempt, &subjects).await;
        unanswered.answer();
        result
    }

    /// Compares the password, and begins the session or counts the failure.
    async fn log_in_counted(
        &self,
        slot: &HashSlot,
        attempt: &LoginAttempt<'_>,
        subjects: &LoginSubjects,
    ) -> Result<Login, LoginFailure> {
        match self.verify_login(slot, attempt).await {
            Ok(account) => Ok(self.start_login_session(&account, subjects).await?),
            Err(failure) => {
                if failure.reason.is_some() {
                    self.count_failure(subjects).await?;
                }
                Err(failure)
            }
        }
    }

    /// The account of an attempt with the right password.
    async fn verify_login(
        &self,
        slot: &HashSlot,
        attempt: &LoginAttempt<'_>,
    ) -> Result<AccountV1, LoginFailure> {
        let found = self.read(attempt.username).await?;
        let stored = found.as_ref().map(|(account, _)| account.password.as_str());
        let verification = slot.verify(attempt.password, stored).await?;
        let wrong = |reason| LoginFailure::refused(reason, "the username or the password is wrong");
        let (account, version) = found.ok_or_else(|| wrong("unknown account"))?;
        if !verification.is_match {
            return Err(wrong("wrong password"));
        }
        if account.disabled {
            return Err(LoginFailure::refused("disabled", "the account is disabled"));
        }
        if verification.is_outdated {
            self.renew_hash(slot, account.clone(), version, attempt.password).await?;
        }
        Ok(account)
    }

    async fn check_counts(&self, subjects: &LoginSubjects) -> Result<(), LoginFailure> {
        let checked = self.throttle.check(&subjects.account).await;
        checked.map_err(|error| LoginFailure::from_throttle(error, "throttled account"))?;
        if let Some(address) = &subjects.address {
            let checked = self.throttle.check(address).await;
            checked.map_err(|error| LoginFailure::from_throttle(error, "throttled address"))?;
        }
        Ok(())
    }

    async fn count_failure(&self, subjects: &LoginSubjects) -> Result<()> {
        self.throttle.count(&subjects.account).await?;
        match &subjects.address {
            Some(address) => self.throttle.count(address).await,
            None => Ok(()),
        }
    }

    /// Begins the session, and forgets the failures of the account in the same step.
    async fn start_login_session(&self, account: &AccountV1, subjects: &LoginSubjects) -> Result<Login> {
        let (login, session) = self.start_session(account)?;
        self.state.apply(vec![session, Throttle::reset(&subjects.account)]).await?;
        Ok(login)
    }

    /// Stores the password's hash with the current iterations. A conflicting change of the account wins.
    async fn renew_hash(
        &self,
        slot: &HashSlot,
        mut account: AccountV1,
        version: u64,
        password: &str,
    ) -> Result<()> {
        account.password = slot.hash(password).await?;
        let renewed: Write = put(&account, Expect::Version(version))?;
        self.try_apply(vec![renewed]).await.map(drop)
    }

    /// Logs a refused login with the account's name, if there is one. The given username is not logged, because people
    /// type passwords into its field.
    async fn log_refusal(&self, attempt: &LoginAttempt<'_>, reason: &'static str) {
        let found = self.read(attempt.username).await.ok().flatten();
        tracing::warn!(
            username = found.as_ref().map_or("unknown", |(account, _)| account.username.as_str()),
            address = attempt.address.map(tracing::field::display),
            reason,
            request_id = attempt.request_id,
            "login refused"
        );
    }
}
