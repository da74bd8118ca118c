//! Hashes of passwords.

use std::{sync::Arc, thread};

use pbkdf2::{
    Params, Pbkdf2,
    password_hash::{CustomizedPasswordHasher, PasswordVerifier},
    phc::PasswordHash,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use unicode_normalization::UnicodeNormalization;

use crate::{Error, ErrorKind, Result};

const OPERATION: &str = "hash password";
const SALT_BYTES: usize = 16;

/// Hashes and verifies, a bounded number at once, while a bounded number waits.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    work: Work,
    slots: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// How hashes are made.
#[derive(Debug, Clone)]
struct Work {
    iterations: u32,
    /// What a password is verified against where there is no account, so that this costs the same.
    dummy: Arc<str>,
}

/// The right to hash, one password after the other.
#[derive(Debug)]
pub(crate) struct Slot {
    work: Work,
    permit: Arc<OwnedSemaphorePermit>,
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Whether the password is the one.
    pub(crate) matches: bool,
    /// Whether the hash was made with fewer iterations than are in force.
    pub(crate) outdated: bool,
}

impl Hasher {
    /// A hasher with `slots`, at least one, for which up to `places` wait.
    pub(crate) fn new(iterations: u32, slots: usize, places: usize) -> Result<Self> {
        let dummy = format!("$pbkdf2-sha256$i={iterations},l=32${}${}", "A".repeat(22), "A".repeat(43));
        // Wrong iterations are found here and not at the first login.
        PasswordHash::new(&dummy).map_err(failed)?;
        Params::new(iterations).map_err(failed)?;
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        let work = Work { iterations, dummy: dummy.into() };
        Ok(Self { work, slots: semaphore(slots.max(1)), places: semaphore(places) })
    }

    /// Waits for a slot, in the order of the calls.
    ///
    /// # Errors
    /// `Overloaded` where too many wait already.
    pub(crate) async fn slot(&self) -> Result<Slot> {
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        Ok(Slot { work: self.work.clone(), permit: Arc::new(permit) })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit> {
        let _place = self.places.try_acquire().map_err(|_| overloaded("too many passwords wait for it"))?;
        Arc::clone(&self.slots).acquire_owned().await.map_err(failed)
    }
}

impl Slot {
    /// The hash of `password` as a PHC string.
    pub(crate) async fn hash(&self, password: &str) -> Result<String> {
        let iterations = self.work.iterations;
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

    /// Compares `password` with a stored hash, in constant time; with `None` it does the same work and fails.
    pub(crate) async fn verify(&self, password: &str, stored: Option<&str>) -> Result<Verified> {
        let known = stored.is_some();
        let stored = stored.unwrap_or(&self.work.dummy).to_owned();
        let iterations = self.work.iterations;
        self.run(password, move |password| {
            let hash = PasswordHash::new(&stored).map_err(failed)?;
            let outdated = hash.params.get_decimal("i").is_none_or(|used| used < iterations);
            let matches = Pbkdf2::default().verify_password(password, &hash).is_ok();
            Ok(Verified { matches: matches && known, outdated })
        })
        .await
    }

    /// Runs `task` on a thread of its own, because those of the runtime are for others too and keep their priority.
    /// A dropped future leaves the slot taken until the work, which cannot be stopped, is done.
    async fn run<T: Send + 'static>(
        &self,
        password: &str,
        task: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let password: String = password.nfc().collect();
        let permit = Arc::clone(&self.permit);
        let (answer, answered) = oneshot::channel();
        let work = move || {
            yield_to_others();
            let result = task(password.as_bytes());
            drop(permit);
            // Nobody may be waiting any more.
            let _ = answer.send(result);
        };
        let thread = thread::Builder::new().name("lkr-auth-hash".to_owned());
        thread.spawn(work).map_err(|error| overloaded(format!("no thread can be started: {error}")))?;
        answered.await.map_err(failed)?
    }
}

/// Lets the thread that calls it have the cores that others leave. On Linux a priority is a thread's, elsewhere the
/// process's, which must keep its own.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    {
        // Where it is refused, the hash is made all the same.
        let _ = rustix::process::nice(10);
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

    async fn slot(iterations: u32) -> Slot {
        Hasher::new(iterations, 1, 0).unwrap().slot().await.unwrap()
    }

    #[tokio::test]
    async fn hashes_are_phc_strings_with_salts_of_their_own() {
        let slot = slot(1000).await;
        let one = slot.hash("some long password").await.unwrap();
        let parts: Vec<_> = one.split('$').collect();
        assert_eq!(parts[..3], ["", "pbkdf2-sha256", "i=1000,l=32"]);
        assert_eq!(parts[3].len(), 22, "16 bytes in base64");
        assert_ne!(one, slot.hash("some long password").await.unwrap());
    }

    /// A PHC string put together by hand over the bare function, as another implementation would write it.
    #[tokio::test]
    async fn verifies_a_known_hash() {
        let stored = "$pbkdf2-sha256$i=4096,l=32$c2FsdHNhbHRzYWx0c2FsdA$";
        let hash = pbkdf2::pbkdf2_hmac_array::<sha2::Sha256, 32>(b"password", b"saltsaltsaltsalt", 4096);
        let stored = format!("{stored}{}", base64(&hash));
        let slot = slot(5000).await;
        let right = slot.verify("password", Some(&stored)).await.unwrap();
        assert_eq!(right, Verified { matches: true, outdated: true });
        assert!(!slot.verify("passwore", Some(&stored)).await.unwrap().matches);
    }

    #[tokio::test]
    async fn composed_and_decomposed_are_one_password() {
        let slot = slot(1000).await;
        let stored = slot.hash("caf\u{e9} au lait").await.unwrap();
        let verified = slot.verify("cafe\u{301} au lait", Some(&stored)).await.unwrap();
        assert_eq!(verified, Verified { matches: true, outdated: false });
    }

    #[tokio::test]
    async fn nobody_has_the_dummy() {
        let slot = slot(1000).await;
        assert!(!slot.verify("", None).await.unwrap().matches);
        assert!(Hasher::new(10, 1, 0).is_err(), "too few iterations are refused at the start");
    }

    #[tokio::test]
    async fn who_waits_has_a_place_or_is_turned_away() {
        let hasher = Hasher::new(1000, 1, 1).unwrap();
        let held = hasher.slot().await.unwrap();
        let (waiting, refused) = tokio::join!(
            async {
                let slot = hasher.slot().await;
                drop(slot.unwrap());
            },
            async {
                let refused = hasher.slot().await;
                drop(held);
                refused
            }
        );
        assert_eq!((waiting, refused.unwrap_err().kind()), ((), ErrorKind::Overloaded));
        assert!(hasher.slot().await.is_ok(), "the place and the slot are free again");
    }

    /// A dropped future does not make room for more work than there are slots.
    #[tokio::test]
    async fn a_slot_is_taken_until_its_work_is_done() {
        let hasher = Hasher::new(1000, 1, 0).unwrap();
        let slot = hasher.slot().await.unwrap();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let work = slot.run("", move |_| {
            let _ = begun.recv();
            Ok(())
        });
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), work).await.is_err());
        drop(slot);
        assert_eq!(hasher.slot().await.unwrap_err().kind(), ErrorKind::Overloaded);
        drop(begin);
        while hasher.slot().await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_thread_that_hashes_gives_way() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let (before, slot) = (niceness(), slot(1000).await);
        let during = slot.run("", move |_| Ok(niceness())).await.unwrap();
        assert_eq!(during, (before + 10).min(19));
        assert_eq!(niceness(), before, "this thread keeps its priority");
        let elsewhere = std::thread::spawn(niceness).join().unwrap();
        assert_eq!(elsewhere, before, "and so do new ones");
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
