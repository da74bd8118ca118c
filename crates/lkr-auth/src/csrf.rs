//! The token by which a page proves that it, and no page of another site, sent a request with a session's cookie.

use lkr_domain::hex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Separates this digest of a session token from the one under which the session is stored.
const DOMAIN: &[u8] = b"lkr csrf token 1\0";

/// The CSRF token of a session: 64 lower-case hexadecimal characters. It is derived from the session token, so nothing more
/// is stored, and it is worth nothing without that token.
#[must_use]
pub fn csrf_token(session_token: &str) -> String {
    hex(&Sha256::new().chain_update(DOMAIN).chain_update(session_token).finalize())
}

/// Whether `sent` is the CSRF token of a session. The comparison takes the same time wherever they differ.
#[must_use]
pub fn is_csrf_token(sent: &str, session_token: &str) -> bool {
    csrf_token(session_token).as_bytes().ct_eq(sent.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{new_token, token_hash};

    #[test]
    fn csrf_token_belongs_to_one_session_and_is_not_its_stored_digest() {
        let (one, two) = (new_token(), new_token());
        let token = csrf_token(&one);
        assert!(is_csrf_token(&token, &one) && !is_csrf_token(&token, &two));
        assert_ne!(Some(&token), token_hash(&one).as_ref());
        for wrong in ["", &one, token.split_at(1).1, &token.to_uppercase(), &format!("{token}0")] {
            assert!(!is_csrf_token(wrong, &one), "{wrong}");
        }
    }

    /// The expected value was computed with `sha256sum`. Pages that are open while the service is upgraded keep their token.
    #[test]
    fn csrf_token_of_a_session_stays_the_same_across_versions() {
        assert_eq!(
            csrf_token(&"0".repeat(64)),
            "5b54953a8d10592954d67fb668a7e8aa5a9952cb316648a19be781a0f0ce71fd"
        );
    }
}
