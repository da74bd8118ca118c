//! Failed passwords are counted for the account and for the address, and too many of them are waited out.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use lkr_domain::hex;
use lkr_state::{ErrorKind as StateErrorKind, Expect, KeyedMutex, StateStore, StateStoreExt, Write};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio::sync::MutexGuard;

use crate::{
    Error, ErrorKind, Result,
    records::{FailuresV1, decode, encode},
};

/// How often a count is tried anew that another one overtook. Each time one of them came through, so that this many
/// would have to count at once.
const TRIES: usize = 64;

/// How many wrong passwords are let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleOptions {
    /// Of an account, at least 1.
    pub account: usize,
    /// From an address, at least 1. As many accounts may be registered from it.
    pub address: usize,
    /// The time in which they count.
    pub window: Duration,
}

impl Default for ThrottleOptions {
    /// 10 of an account and 100 from an address, in 15 minutes.
    fn default() -> Self {
        Self { account: 10, address: 100, window: Duration::from_secs(15 * 60) }
    }
}

/// For whom failures are counted.
#[derive(Debug)]
pub(crate) struct Subject {
    key: String,
    limit: usize,
}

/// The counts, in the store: they outlive the process and hold on every node.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    state: Arc<dyn StateStore>,
    options: ThrottleOptions,
    turns: KeyedMutex,
}

impl Throttle {
    pub(crate) fn new(state: Arc<dyn StateStore>, options: ThrottleOptions) -> Self {
        Self { state, options, turns: KeyedMutex::default() }
    }

    /// The logins of a name, be there such an account or not.
    pub(crate) fn logins(&self, username: &str) -> Subject {
        self.of_name("account", username)
    }

    /// The password changes of an account. They are counted apart, so that failed logins, which anybody can bring
    /// about, keep nobody from changing the password.
    pub(crate) fn changes(&self, username: &str) -> Subject {
        self.of_name("password", username)
    }

    /// The logins from an address. One of IPv6 stands for the network of 64 bits that its holder chooses from.
    pub(crate) fn address(&self, address: IpAddr) -> Subject {
        self.of_address("address", address)
    }

    /// The accounts that were made from an address.
    pub(crate) fn registrations(&self, address: IpAddr) -> Subject {
        self.of_address("register", address)
    }

    fn of_address(&self, what: &str, address: IpAddr) -> Subject {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        };
        Subject { key: format!("auth/throttle/{what}/{network}"), limit: self.options.address.max(1) }
    }

    /// A name is hashed: it may be of any length and hold anything, a password too.
    fn of_name(&self, what: &str, username: &str) -> Subject {
        let name = hex(&Sha256::digest(username.to_ascii_lowercase()));
        Subject { key: format!("auth/throttle/{what}/{name}"), limit: self.options.account.max(1) }
    }

    /// Waits until nobody else of this process tries for the subject. What is counted then cannot grow between the
    /// look at it and the try.
    pub(crate) async fn turn(&self, subject: &Subject) -> Option<MutexGuard<'_, ()>> {
        self.turns.lock(&subject.key).await
    }

    /// Whether the subject may try.
    ///
    /// # Errors
    /// `RateLimited` where it failed too often.
    pub(crate) async fn check(&self, subject: &Subject) -> Result<()> {
        let (failures, _) = self.read(subject).await?;
        match retry_after(&failures.at_ms, subject.limit, self.window_ms(), now_ms()) {
            None => Ok(()),
            Some(retry_after) => Err(Error::new(
                ErrorKind::RateLimited { retry_after },
                "authentication",
                "too many tries, try again later",
            )),
        }
    }

    /// Counts one more: a failure, or an account that is registered.
    pub(crate) async fn count(&self, subject: &Subject) -> Result<()> {
        for _ in 0..TRIES {
            let (mut failures, expect) = self.read(subject).await?;
            add(&mut failures.at_ms, subject.limit, self.window_ms(), now_ms());
            let write = Write::put_for(&subject.key, expect, encode(failures)?, self.options.window);
            match self.state.apply(vec![write]).await {
                Err(error) if error.kind() == StateErrorKind::Conflict => {}
                result => return Ok(result?),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "authentication", "too many try at once"))
    }

    /// The write that forgets what was counted.
    pub(crate) fn forget(subject: &Subject) -> Write {
        Write::delete(&subject.key, Expect::Any)
    }

    async fn read(&self, subject: &Subject) -> Result<(FailuresV1, Expect)> {
        let Some(record) = self.state.get(&subject.key).await? else {
            return Ok((FailuresV1::default(), Expect::Absent));
        };
        Ok((decode(&record.value)?, Expect::Version(record.version)))
    }

    fn window_ms(&self) -> i64 {
        i64::try_from(self.options.window.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Adds a failure and forgets those that count no more. No more than `limit` are kept: the newest of them tell when
/// the next try is looked at.
fn add(at_ms: &mut Vec<i64>, limit: usize, window_ms: i64, now_ms: i64) {
    // One of the future was noted by a clock that was put back since; it counts from now.
    at_ms.iter_mut().for_each(|at| *at = (*at).min(now_ms));
    at_ms.retain(|at| now_ms.saturating_sub(*at) < window_ms);
    at_ms.push(now_ms);
    // The clocks of two nodes may differ.
    at_ms.sort_unstable();
    at_ms.drain(..at_ms.len().saturating_sub(limit));
}

/// How long to wait until fewer than `limit` failures count; `None` where it is so already.
fn retry_after(at_ms: &[i64], limit: usize, window_ms: i64, now_ms: i64) -> Option<Duration> {
    let oldest = at_ms.len().checked_sub(limit).and_then(|first| at_ms.get(first))?;
    let left = window_ms.saturating_sub(now_ms.saturating_sub(*oldest));
    let left = u64::try_from(left.min(window_ms)).ok().filter(|&left| left > 0)?;
    Some(Duration::from_millis(left.max(1000)))
}

fn now_ms() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
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
    fn the_window_slides() {
        let mut failures = vec![];
        for n in 0..10 {
            assert_eq!(retry_after(&failures, 10, WINDOW, n * 1000), None, "{n} failed");
            add(&mut failures, 10, WINDOW, n * 1000);
        }
        let wait =
            |failures: &[i64], now| retry_after(failures, 10, WINDOW, now).map(|wait| wait.as_millis());
        assert_eq!(wait(&failures, 9000), Some(891_000), "until the first of them leaves");
        assert_eq!(wait(&failures, 899_999), Some(1000), "a second at least");
        assert_eq!(wait(&failures, 900_000), None, "nine are left");
        add(&mut failures, 10, WINDOW, 900_000);
        assert_eq!(failures.len(), 10);
        assert_eq!(wait(&failures, 900_000), Some(1000), "until the second leaves");
        add(&mut failures, 10, WINDOW, 2 * WINDOW);
        assert_eq!(failures, [2 * WINDOW]);
    }

    /// Failures that came in at once may be more than the limit; the newest of them decide.
    #[test]
    fn too_many_are_cut() {
        let mut failures = vec![0, 1, 2, 3, 4];
        assert_eq!(retry_after(&failures, 3, WINDOW, 10), Some(Duration::from_millis(899_992)));
        add(&mut failures, 3, WINDOW, 10);
        assert_eq!(failures, [3, 4, 10]);
    }

    #[test]
    fn a_clock_that_was_put_back_locks_nobody_out_for_longer() {
        let mut failures = vec![i64::MAX - 1, i64::MAX];
        assert_eq!(retry_after(&failures, 2, WINDOW, 5), Some(Duration::from_millis(900_000)));
        add(&mut failures, 2, WINDOW, 5);
        assert_eq!(failures, [5, 5]);
    }

    #[test]
    fn lesson_32_addresses_are_counted_by_who_holds_them() {
        let throttle = throttle();
        let key = |text: &str| throttle.address(text.parse().unwrap()).key;
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
    }

    #[test]
    fn names_are_counted_without_case_and_kinds_apart() {
        let throttle = throttle();
        assert_eq!(throttle.logins("Bob").key, throttle.logins("bOB").key);
        assert_ne!(throttle.logins("bob").key, throttle.changes("bob").key);
        let endless = throttle.logins(&"é".repeat(100_000)).key;
        assert!(endless.len() < 400, "a key of the store");
    }
}
