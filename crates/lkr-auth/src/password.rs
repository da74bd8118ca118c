//! Passwords: which there can be, and their hashes.

use std::sync::Arc;

use pbkdf2::{
    Params, Pbkdf2,
    password_hash::{CustomizedPasswordHasher, PasswordVerifier},
    phc::PasswordHash,
};
use tokio::sync::Semaphore;
use unicode_normalization::UnicodeNormalization;

use crate::{Error, Result};

const OPERATION: &str = "hash password";
const SALT_BYTES: usize = 16;
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=128;

/// Refuses what cannot be a password: it has 8 to 128 characters, counted in normal form C.
pub fn check_password(password: &str) -> Result<()> {
    let length = password.nfc().count();
    if LENGTHS.contains(&length) {
        return Ok(());
    }
    Err(Error::invalid("password", format!("has {length} characters, 8 to 128 are needed")))
}

/// A random password of 24 letters and digits (some 137 bits), none of which look alike.
#[must_use]
pub fn generate_password() -> String {
    const ALPHABET: &[char] = &[
        'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'u', 'v',
        'w', 'x', 'y', 'z', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J', 'K', 'L', 'M', 'N', 'P', 'Q', 'R',
        'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', '2', '3', '4', '5', '6', '7', '8', '9',
    ];
    (0..24).filter_map(|_| ALPHABET.get(rand::random_range(0..ALPHABET.len()))).collect()
}

/// Hashes and verifies, a bounded number at once.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    iterations: u32,
    slots: Arc<Semaphore>,
    /// What a password is verified against where there is no account, so that this costs the same.
    dummy: Arc<str>,
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
    /// A hasher with `slots` hashes at once.
    pub(crate) fn new(iterations: u32, slots: usize) -> Result<Self> {
        let dummy = format!("$pbkdf2-sha256$i={iterations},l=32${}${}", "A".repeat(22), "A".repeat(43));
        // Wrong iterations are found here and not at the first login.
        PasswordHash::new(&dummy).map_err(failed)?;
        Params::new(iterations).map_err(failed)?;
        Ok(Self { iterations, slots: Arc::new(Semaphore::new(slots.max(1))), dummy: dummy.into() })
    }

    /// The hash of `password` as a PHC string.
    pub(crate) async fn hash(&self, password: &str) -> Result<String> {
        let iterations = self.iterations;
        self.work(password, move |password| {
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
        let stored = stored.unwrap_or(&self.dummy).to_owned();
        let iterations = self.iterations;
        self.work(password, move |password| {
            let hash = PasswordHash::new(&stored).map_err(failed)?;
            let outdated = hash.params.get_decimal("i").is_none_or(|used| used < iterations);
            let matches = Pbkdf2::default().verify_password(password, &hash).is_ok();
            Ok(Verified { matches: matches && known, outdated })
        })
        .await
    }

    /// Runs `task` on a blocking thread under one of the slots. A dropped future leaves the slot taken until the
    /// work, which cannot be stopped, is done.
    async fn work<T: Send + 'static>(
        &self,
        password: &str,
        task: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let password: String = password.nfc().collect();
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(failed)?;
        tokio::task::spawn_blocking(move || {
            let result = task(password.as_bytes());
            drop(slot);
            result
        })
        .await
        .map_err(failed)?
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(OPERATION, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_normal_form() {
        assert!(check_password("1234567").is_err());
        assert!(check_password("12345678").is_ok());
        assert!(check_password(&"é".repeat(128)).is_ok());
        assert!(check_password(&"e\u{301}".repeat(128)).is_ok(), "two code points, one character");
        assert!(check_password(&"é".repeat(129)).is_err());
        assert!(check_password("e\u{301}234567").is_err());
    }

    #[test]
    fn generated_passwords_pass_and_differ() {
        let (one, other) = (generate_password(), generate_password());
        assert!(check_password(&one).is_ok());
        assert_eq!(one.len(), 24);
        assert_ne!(one, other);
    }

    #[tokio::test]
    async fn hashes_are_phc_strings_with_salts_of_their_own() {
        let hasher = Hasher::new(1000, 1).unwrap();
        let one = hasher.hash("some long password").await.unwrap();
        let parts: Vec<_> = one.split('$').collect();
        assert_eq!(parts[..3], ["", "pbkdf2-sha256", "i=1000,l=32"]);
        assert_eq!(parts[3].len(), 22, "16 bytes in base64");
        assert_ne!(one, hasher.hash("some long password").await.unwrap());
    }

    /// A PHC string put together by hand over the bare function, as another implementation would write it.
    #[tokio::test]
    async fn verifies_a_known_hash() {
        let stored = "$pbkdf2-sha256$i=4096,l=32$c2FsdHNhbHRzYWx0c2FsdA$";
        let hash = pbkdf2::pbkdf2_hmac_array::<sha2::Sha256, 32>(b"password", b"saltsaltsaltsalt", 4096);
        let stored = format!("{stored}{}", base64(&hash));
        let hasher = Hasher::new(5000, 1).unwrap();
        let right = hasher.verify("password", Some(&stored)).await.unwrap();
        assert_eq!(right, Verified { matches: true, outdated: true });
        assert!(!hasher.verify("passwore", Some(&stored)).await.unwrap().matches);
    }

    #[tokio::test]
    async fn composed_and_decomposed_are_one_password() {
        let hasher = Hasher::new(1000, 1).unwrap();
        let stored = hasher.hash("caf\u{e9} au lait").await.unwrap();
        let verified = hasher.verify("cafe\u{301} au lait", Some(&stored)).await.unwrap();
        assert_eq!(verified, Verified { matches: true, outdated: false });
    }

    #[tokio::test]
    async fn nobody_has_the_dummy() {
        let hasher = Hasher::new(1000, 1).unwrap();
        assert!(!hasher.verify("", None).await.unwrap().matches);
        assert!(Hasher::new(10, 1).is_err(), "too few iterations are refused at the start");
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
