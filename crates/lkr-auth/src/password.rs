//! The rules for passwords.

use unicode_normalization::UnicodeNormalization;

use crate::{Error, Result};

/// The length of a password, in characters. See docs/studies.md#password-hashing.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=128;

/// Checks that a password has 8 to 128 characters, counted in normal form C.
pub fn check_password(password: &str) -> Result<()> {
    let length = password.nfc().count();
    if LENGTHS.contains(&length) {
        return Ok(());
    }
    Err(Error::invalid("password", format!("has {length} characters; allowed are 8 to 128")))
}

/// A random password of 24 letters and digits (some 137 bits), without characters that look alike.
#[must_use]
pub fn generate_password() -> String {
    const ALPHABET: &[char] = &[
        'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'u', 'v',
        'w', 'x', 'y', 'z', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J', 'K', 'L', 'M', 'N', 'P', 'Q', 'R',
        'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', '2', '3', '4', '5', '6', '7', '8', '9',
    ];
    (0..24).filter_map(|_| ALPHABET.get(rand::random_range(0..ALPHABET.len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_password_counts_characters_in_normal_form() {
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
}
