//! Counts failed logins by account and by address, and refuses further attempts above a limit.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use lkr_domain::hex;
use lkr_state::{Expect, KeyedMutex, StateStore, StateStoreExt, Write, retry_on_conflict};
use sha2::{Digest, Sha256};
use tokio::sync::MutexGuard;

use crate::{
    Error, ErrorKind, Result,
    records::{FailuresV1, decode, encode},
};

/// The limits of failed logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleOptions {
    /// Failures of an account, at least 1.
    pub account: usize,
    /// Failures from an address, at least 1. Also the limit of registrations from an address.
    pub address: usize,
    /// The sliding window in which failures count.
    pub window: Duration,
}

impl Default for ThrottleOptions {
    /// 10 for an account and 100 for an address, in 15 minutes. See docs/studies.md#login-throttle.
    fn default() -> Self {
        Self { account: 10, address: 100, window: Duration::from_secs(15 * 60) }
    }
}

/// What failures are counted for: an account or an address, and the kind of attempt.
#[derive(Debug, Clone)]
pub(crate) struct ThrottleSubject {
    key: String,
    limit: usize,
}

/// The counts. They are in the store, so they outlive the process and apply on every node.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    state: Arc<dyn StateStore>,
    options: ThrottleOptions,
    locks: KeyedMutex,
}

impl Throttle {
    pub(crate) fn new(state: Arc<dyn StateStore>, options: ThrottleOptions) -> Self {
        Self { state, options, locks: KeyedMutex::default() }
    }

    /// Logins with a username, whether or not the account exists.
    pub(crate) fn logins(&self, username: &str) -> ThrottleSubject {
        self.for_name("account", username)
    }

    /// Password changes of an account. They are counted separately, because anybody can cause failed logins, and these
    /// must not block the owner's password change.
    pub(crate) fn changes(&self, username: &str) -> ThrottleSubject {
        self.for_name("password", username)
    }

    /// Logins from an address. An IPv6 address counts as its /64 network, from which its holder can choose freely.
    pub(crate) fn address(&self, address: IpAddr) -> ThrottleSubject {
        self.for_address("address", address)
    }

    /// Registrations from an address.
    pub(crate) fn registrations(&self, address: IpAddr) -> ThrottleSubject {
        self.for_address("register", address)
    }

    fn for_address(&self, kind: &str, address: IpAddr) -> ThrottleSubject {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        };
        ThrottleSubject { key: format!("auth/throttle/{kind}/{network}"), limit: self.options.address.max(1) }
    }

    /// The name is hashed: it may have any length and contain anything, even a password.
    fn for_name(&self, kind: &str, username: &str) -> ThrottleSubject {
        let name = hex(&Sha256::digest(username.to_ascii_lowercase()));
        ThrottleSubject { key: format!("auth/throttle/{kind}/{name}"), limit: self.options.account.max(1) }
    }

    /// Serialises the attempts of this process for the subject, so that the count cannot grow between its check and the
    /// attempt.
    pub(crate) async fn lock(&self, subject: &ThrottleSubject) -> Option<MutexGuard<'_, ()>> {
        self.locks.lock(&subject.key).await
    }

    /// Checks that the subject is below its limit.
    ///
    /// # Errors
    /// `RateLimited` if it is not.
    pub(crate) async fn check(&self, subject: &ThrottleSubject) -> Result<()> {
        let (failures, _) = self.read(subject).await?;
        match retry_after(&failures.at_ms, subject.limit, self.window_ms(), self.now_ms()) {
            None => Ok(()),
            Some(retry_after) => Err(Error::new(
                ErrorKind::RateLimited { retry_after },
                "authentication",
                "too many attempts; try again later",
            )),
        }
    }

    /// Counts a failure or a registration.
    pub(crate) async fn count(&self, subject: &ThrottleSubject) -> Result<()> {
        retry_on_conflict(&*self.state, "authentication", || async {
            let (mut failures, expect) = self.read(subject).await?;
            add(&mut failures.at_ms, subject.limit, self.window_ms(), self.now_ms());
            let write = Write::put_for(&subject.key, expect, encode(failures)?, self.options.window);
            Ok(self.state.apply(vec![write]).await?)
        })
        .await
    }

    /// The writes that reset all counts of an account: somebody who may has given its owner access anew.
    pub(crate) fn resets(&self, username: &str) -> [Write; 2] {
        [self.logins(username), self.changes(username)].map(|subject| Self::reset(&subject))
    }

    /// The write that resets the count.
    pub(crate) fn reset(subject: &ThrottleSubject) -> Write {
        Write::delete(&subject.key, Expect::Any)
    }

    async fn read(&self, subject: &ThrottleSubject) -> Result<(FailuresV1, Expect)> {
        let Some(record) = self.state.get(&subject.key).await? else {
            return Ok((FailuresV1::default(), Expect::Absent));
        };
        Ok((decode(&record.value)?, Expect::Version(record.version)))
    }

    /// By the clock that all processes share.
    fn now_ms(&self) -> i64 {
        i64::try_from(self.state.now().unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
    }

    fn window_ms(&self) -> i64 {
        i64::try_from(self.options.window.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Adds a failure and removes those outside the window. Only the newest `limit` are kept, because they determine the
/// wait.
fn add(at_ms: &mut Vec<i64>, limit: usize, window_ms: i64, now_ms: i64) {
    // A time in the future was written before the clock was set back; it counts from now.
    at_ms.iter_mut().for_each(|at| *at = (*at).min(now_ms));
    at_ms.retain(|at| now_ms.saturating_sub(*at) < window_ms);
    at_ms.push(now_ms);
    // The clocks of nodes may differ.
    at_ms.sort_unstable();
    at_ms.drain(..at_ms.len().saturating_sub(limit));
}

/// The wait until fewer than `limit` failures count; `None` if that is the case already.
///
/// A time in the future was written before the clock was set back. One that is further away than the window does not count,
/// because that could take as long as the clock was ahead.
fn retry_after(at_ms: &[i64], limit: usize, window_ms: i64, now_ms: i64) -> Option<Duration> {
    let latest = now_ms.saturating_add(window_ms);
    let at_ms = at_ms.get(..at_ms.partition_point(|at| *at <= latest))?;
    let oldest = at_ms.len().checked_sub(limit).and_then(|first| at_ms.get(first))?;
    let left = window_ms.saturating_sub(now_ms.saturating_sub(*oldest));
    let left = u64::try_from(left.min(window_ms)).ok().filter(|&left| left > 0)?;
    Some(Duration::from_millis(left.max(1000)))
}

#[cfg(test)]
mod tests {
    use lkr_state::MemoryState;

    use super::*;

    const WINDOW: i64 = 900_000;

    fn throttle() -> Throttle {
        Throttle::new(Arc::new(MemoryState::new()), ThrottleOptions::default())
    }

    #[test]
    fn failures_leave_the_sliding_window_one_by_one() {
        let mut failures = vec![];
        for n in 0..10 {
            assert_eq!(retry_after(&failures, 10, WINDOW, n * 1000), None, "{n} failed");
            add(&mut failures, 10, WINDOW, n * 1000);
        }
        let wait =
            |failures: &[i64], now| retry_after(failures, 10, WINDOW, now).map(|wait| wait.as_millis());
        assert_eq!(wait(&failures, 9000), Some(891_000), "until the first failure leaves the window");
        assert_eq!(wait(&failures, 899_999), Some(1000), "at least a second");
        assert_eq!(wait(&failures, 900_000), None, "nine failures are left");
        add(&mut failures, 10, WINDOW, 900_000);
        assert_eq!(failures.len(), 10);
        assert_eq!(wait(&failures, 900_000), Some(1000), "until the second failure leaves");
        add(&mut failures, 10, WINDOW, 2 * WINDOW);
        assert_eq!(failures, [2 * WINDOW]);
    }

    /// Concurrent failures may exceed the limit; the newest ones decide.
    #[test]
    fn failures_above_the_limit_are_dropped() {
        let mut failures = vec![0, 1, 2, 3, 4];
        assert_eq!(retry_after(&failures, 3, WINDOW, 10), Some(Duration::from_millis(899_992)));
        add(&mut failures, 3, WINDOW, 10);
        assert_eq!(failures, [3, 4, 10]);
    }

    #[test]
    fn clock_set_back_does_not_extend_the_wait() {
        let mut failures = vec![i64::MAX - 1, i64::MAX];
        assert_eq!(retry_after(&failures, 2, WINDOW, 5), None, "the clock was far ahead");
        add(&mut failures, 2, WINDOW, 5);
        assert_eq!(failures, [5, 5]);
        assert_eq!(retry_after(&failures, 2, WINDOW, 5), Some(Duration::from_millis(900_000)));
        let ahead = [5 + WINDOW; 2];
        assert_eq!(retry_after(&ahead, 2, WINDOW, 5), Some(Duration::from_millis(900_000)));
        assert_eq!(retry_after(&ahead, 2, WINDOW, 5 + 2 * WINDOW), None, "twice the window at most");
    }

    #[test]
    fn lesson_32_ipv6_addresses_are_counted_by_network() {
        let throttle = throttle();
        let key = |text: &str| throttle.address(text.parse().unwrap()).key;
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
    }

    #[test]
    fn names_are_counted_case_insensitively_and_kinds_separately() {
        let throttle = throttle();
        assert_eq!(throttle.logins("Bob").key, throttle.logins("bOB").key);
        assert_ne!(throttle.logins("bob").key, throttle.changes("bob").key);
        let long_name = throttle.logins(&"é".repeat(100_000)).key;
        assert!(long_name.len() < 400, "it fits a key of the store");
    }
}
