use std::{
    fmt,
    io::{self, Read},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of a file's bytes. Its text form is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of all that a reader yields.
    pub(crate) fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => return Ok(Self::finish(hasher)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(buffer.get(..read).unwrap_or_default());
        }
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// A number that depends on all bytes.
    pub(crate) fn number(self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lkr_domain::hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let bytes = text.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] => Some(value(*high)? << 4 | value(*low)?),
            _ => None,
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(InvalidDigest)
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidDigest;

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a SHA-256 digest: 64 hexadecimal digits are required")
    }
}

impl std::error::Error for InvalidDigest {}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_survives_its_text_form() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap(), digest);
    }

    #[test]
    fn text_that_is_no_digest_is_refused() {
        for text in ["", "ab", "zz", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66)] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest), "{text}");
        }
    }
}
