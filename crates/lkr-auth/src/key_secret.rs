//! The form of the secrets of API keys.

use crate::session::token_hash;

/// The prefix of every secret, so that scanners can recognise leaked keys.
pub(crate) const PREFIX: &str = "lkr_";

/// Whether a token has the prefix of an API key.
pub(crate) fn is_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// The SHA-256 of a key's secret, under which the key is stored; `None` if the text is not a key.
pub(crate) fn secret_hash(secret: &str) -> Option<String> {
    token_hash(secret.strip_prefix(PREFIX)?)
}
