//! Password hashing.

use std::{sync::Arc, thread};

use lkr_threads::give_way;
use pbkdf2::{
    Params, Pbkdf2,
    password_hash::{CustomizedPasswordHasher, PasswordVerifier},
    phc::PasswordHash,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use unicode_normalization::UnicodeNormalization;

use crate::{Error, ErrorKind, Result};

const OPERATION: &str = "hash password";
/// See docs/studies.md#password-hashing.
const SALT_BYTES: usize = 16;

/// Hashes and verifies passwords. The numbers of concurrent and of waiting hashes are bounded.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    params: HashParams,
    /// One permit for each concurrent hash.
    running: Arc<Semaphore>,
    /// One permit for each waiting password.
    waiting: Arc<Semaphore>,
}

/// The parameters of new hashes.
#[derive(Debug, Clone)]
struct HashParams {
    iterations: u32,
    /// The hash that a password is compared with if there is no account, so that the cost is the same.
    dummy: Arc<str>,
}

/// The permission to hash passwords, one at a time.
#[derive(Debug)]
pub(crate) struct HashSlot {
    params: HashParams,
    permit: Arc<OwnedSemaphorePermit>,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verification {
    /// Whether the password is correct.
    pub(crate) is_match: bool,
    /// Whether the hash has fewer iterations than new hashes.
    pub(crate) is_outdated: bool,
}

impl Hasher {
    /// A hasher for `concurrent` hashes, at least one, and up to `waiting` passwords that wait.
    pub(crate) fn new(iterations: u32, concurrent: usize, waiting: usize) -> Result<Self> {
        let dummy = format!("$pbkdf2-sha256$i={iterations},l=32${}${}", "A".repeat(22), "A".repeat(43));
        // Invalid parameters are reported here and not at the first login.
        PasswordHash::new(&dummy).map_err(failed)?;
        Params::new(iterations).map_err(failed)?;
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        let params = HashParams { iterations, dummy: dummy.into() };
        Ok(Self { params, running: semaphore(concurrent.max(1)), waiting: semaphore(waiting) })
    }

    /// Waits for a slot. Slots are given in the order of the calls.
    ///
    /// # Errors
    /// `Overloaded` if too many wait already.
    pub(crate) async fn acquire(&self) -> Result<HashSlot> {
        let permit = match Arc::clone(&self.running).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        Ok(HashSlot { params: self.params.clone(), permit: Arc::new(permit) })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit> {
        let _waiting =
            self.waiting.try_acquire().map_err(|_| overloaded("too many passwords are waiting"))?;
        Arc::clone(&self.running).acquire_owned().await.map_err(failed)
    }
}

impl HashSlot {
    /// The hash of `password` as a PHC string.
    pub(crate) async fn hash(&self, password: &str) -> Result<String> {
        let iterations = self.params.iterations;
        self.run(password, move |password| {
            let params = Params::new(iterations).map_err(failed)?;
            let salt: [u8; SALT_BYTES] = rand::random();
            let hash = Pbkdf2::default()
                .hash_password_customized(password, &salt, Some("pbkdf2-sha256"), None, params)
                .map_err(failed)?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Compares `password` with a stored hash in constant time. Without a hash, it does the same work and fails.
    pub(crate) async fn verify(&self, password: &str, stored: Option<&str>) -> Result<Verification> {
        let has_account = stored.is_some();
        let stored = stored.unwrap_or(&self.params.dummy).to_owned();
        let iterations = self.params.iterations;
        self.run(password, move |password| {
            let hash = PasswordHash::new(&stored).map_err(failed)?;
            let is_outdated = hash.params.get_decimal("i").is_none_or(|used| used < iterations);
            let is_match = Pbkdf2::default().verify_password(password, &hash).is_ok();
            Ok(Verification { is_match: is_match && has_account, is_outdated })
        })
        .await
    }

    /// Runs `task` on its own thread, because it lowers the thread's priority and runtime threads are shared. The work
    /// cannot be stopped: if the future is dropped, the slot stays taken until the work is done.
    async fn run<T: Send + 'static>(
        &self,
        password: &str,
        task: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let password: String = password.nfc().collect();
        let permit = Arc::clone(&self.permit);
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            give_way();
            let result = task(password.as_bytes());
            drop(permit);
            // The caller may have been dropped.
            let _ = sender.send(result);
        };
        let thread = thread::Builder::new().name("lkr-auth-hash".to_owned());
        thread.spawn(work).map_err(|error| overloaded(format!("cannot start a thread: {error}")))?;
        receiver.await.map_err(failed)?
    }
}

fn overloaded(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Overloaded, OPERATION, reason.into())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(OPERATION, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn slot(iterations: u32) -> HashSlot {
        Hasher::new(iterations, 1, 0).unwrap().acquire().await.unwrap()
    }

    #[tokio::test]
    async fn hashes_are_phc_strings_with_different_salts() {
        let slot = slot(1000).await;
        let one = slot.hash("some long password").await.unwrap();
        let parts: Vec<_> = one.split('$').collect();
        assert_eq!(parts[..3], ["", "pbkdf2-sha256", "i=1000,l=32"]);
        assert_eq!(parts[3].len(), 22, "16 bytes in base64");
        assert_ne!(one, slot.hash("some long password").await.unwrap());
    }

    /// The PHC string is built from the plain PBKDF2 function, as another implementation would do.
    #[tokio::test]
    async fn verify_accepts_a_hash_of_another_implementation() {
        let stored = "$pbkdf2-sha256$i=4096,l=32$c2FsdHNhbHRzYWx0c2FsdA$";
        let hash = pbkdf2::pbkdf2_hmac_array::<sha2::Sha256, 32>(b"password", b"saltsaltsaltsalt", 4096);
        let stored = format!("{stored}{}", base64(&hash));
        let slot = slot(5000).await;
        let right = slot.verify("password", Some(&stored)).await.unwrap();
        assert_eq!(right, Verification { is_match: true, is_outdated: true });
        assert!(!slot.verify("passwore", Some(&stored)).await.unwrap().is_match);
    }

    #[tokio::test]
    async fn composed_and_decomposed_characters_are_equal() {
        let slot = slot(1000).await;
        let stored = slot.hash("caf\u{e9} au lait").await.unwrap();
        let verified = slot.verify("cafe\u{301} au lait", Some(&stored)).await.unwrap();
        assert_eq!(verified, Verification { is_match: true, is_outdated: false });
    }

    #[tokio::test]
    async fn verify_without_account_always_fails() {
        let slot = slot(1000).await;
        assert!(!slot.verify("", None).await.unwrap().is_match);
        assert!(Hasher::new(10, 1, 0).is_err(), "too few iterations are refused at the start");
    }

    #[tokio::test]
    async fn acquire_with_full_queue_is_overloaded() {
        let hasher = Hasher::new(1000, 1, 1).unwrap();
        let held = hasher.acquire().await.unwrap();
        let (waiting, refused) = tokio::join!(
            async {
                let slot = hasher.acquire().await;
                drop(slot.unwrap());
            },
            async {
                let refused = hasher.acquire().await;
                drop(held);
                refused
            }
        );
        assert_eq!((waiting, refused.unwrap_err().kind()), ((), ErrorKind::Overloaded));
        assert!(hasher.acquire().await.is_ok(), "the slot and the place in the queue are free again");
    }

    /// Dropping the future must not allow more concurrent work than there are slots.
    #[tokio::test]
    async fn slot_of_a_dropped_future_stays_taken_until_its_work_is_done() {
        let hasher = Hasher::new(1000, 1, 0).unwrap();
        let slot = hasher.acquire().await.unwrap();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let work = slot.run("", move |_| {
            let _ = begun.recv();
            Ok(())
        });
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), work).await.is_err());
        drop(slot);
        assert_eq!(hasher.acquire().await.unwrap_err().kind(), ErrorKind::Overloaded);
        drop(begin);
        while hasher.acquire().await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_hashing_thread_has_lower_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let (before, slot) = (niceness(), slot(1000).await);
        let during = slot.run("", move |_| Ok(niceness())).await.unwrap();
        assert_eq!(during, (before + 10).min(19));
        assert_eq!(niceness(), before, "this thread keeps its priority");
        let elsewhere = std::thread::spawn(niceness).join().unwrap();
        assert_eq!(elsewhere, before, "new threads keep their priority");
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits =
                group.iter().enumerate().fold(0u32, |bits, (n, &b)| bits | u32::from(b) << (16 - 8 * n));
            (0..=group.len()).for_each(|n| text.push(DIGITS[(bits >> (18 - 6 * n)) as usize & 63] as char));
        }
        text
    }
}
