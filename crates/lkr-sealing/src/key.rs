use std::fmt;

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};

use crate::{Error, ErrorKind, Result, Secret, hex};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The key that seals secrets at rest: 256 bits.
#[derive(Clone)]
pub struct SealingKey([u8; KEY_BYTES]);

impl SealingKey {
    /// Generates a random key.
    #[must_use]
    pub fn generate() -> Self {
        Self(rand::random())
    }

    /// Parses 64 hexadecimal digits in upper or lower case. White space around them is ignored.
    ///
    /// # Errors
    /// `Invalid` if the text is something else. The error does not repeat the text.
    pub fn from_hex(text: &str) -> Result<Self> {
        hex::decode(text.trim())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| Error::new(ErrorKind::Invalid, "secret key", "is not 64 hexadecimal digits"))
    }

    /// The key as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        lkr_domain::hex(&self.0)
    }

    /// Encrypts a secret and binds it to `place`: [`open`](Self::open) returns it for that place only.
    pub fn seal(&self, secret: &Secret, place: &str) -> Result<String> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: secret.expose().as_bytes(), aad: place.as_bytes() };
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| Error::new(ErrorKind::Internal, "seal a secret", "the cipher failed"))?;
        Ok(lkr_domain::hex(&[nonce.as_slice(), &sealed].concat()))
    }

    /// Decrypts a secret that was sealed for `place`; `None` if the key or the place differs or the text was changed.
    #[must_use]
    pub fn open(&self, sealed: &str, place: &str) -> Option<Secret> {
        let bytes = hex::decode(sealed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        let secret = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        String::from_utf8(secret).ok().map(Secret::from)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.0))
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_round_trips_through_hex_and_is_hidden_in_debug() {
        let key = SealingKey::generate();
        let text = key.to_hex();
        assert_eq!(text.len(), 64);
        for form in [text.clone(), text.to_uppercase(), format!(" \t{text}\r\n")] {
            assert_eq!(SealingKey::from_hex(&form).unwrap().to_hex(), text);
        }
        assert_ne!(SealingKey::generate().to_hex(), text);
        assert!(!format!("{key:?}").contains(&text), "Debug shows the key");
    }

    #[test]
    fn from_hex_refuses_other_text_without_repeating_it() {
        let key = SealingKey::generate().to_hex();
        let long = format!("{key}00");
        let (half, rest) = key.split_at(32);
        let inner = format!("{half} {rest}");
        for text in ["", "abc", half, &format!("{half}0"), &long, &inner, &"g".repeat(64)] {
            let error = SealingKey::from_hex(text).unwrap_err();
            assert_eq!(error.to_string(), "secret key: is not 64 hexadecimal digits");
        }
    }

    #[test]
    fn open_requires_the_same_key_and_place() {
        let (key, secret) = (SealingKey::generate(), Secret::new("sk-planted"));
        let sealed = key.seal(&secret, "models.embed").unwrap();
        assert_eq!(key.open(&sealed, "models.embed"), Some(secret.clone()));
        assert_eq!(key.open(&sealed, "models.rerank"), None);
        assert_eq!(SealingKey::generate().open(&sealed, "models.embed"), None);
        assert_ne!(key.seal(&secret, "models.embed").unwrap(), sealed, "the nonce was reused");
    }

    #[test]
    fn changed_or_truncated_text_does_not_open() {
        let key = SealingKey::generate();
        let sealed = key.seal(&Secret::new("sk-planted"), "models.embed").unwrap();
        let bytes = hex::decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(&lkr_domain::hex(&changed), "models.embed"), None, "byte {at}");
            assert_eq!(key.open(&lkr_domain::hex(&bytes[..at]), "models.embed"), None, "cut at {at}");
        }
        assert_eq!(key.open("not hexadecimal", "models.embed"), None);
    }
}
