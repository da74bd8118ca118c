//! Keys of stored values that sort like the values.
//!
//! Behind the tag's key, its digest, come the type and the value: numbers and instants in their ordered bytes, texts as
//! bytes, whose order is that of code points. A zero byte inside a text is followed by `FF`, and `00 00` ends a text. Of
//! a longer text the key has the first bytes, `00 01` and a digest. Such texts sort among all others, except among those
//! with the same first bytes, whose whole values are compared.

use lkr_domain::filter::{Instant, Number};
use sha2::{Digest, Sha256};

/// How many bytes of a text are in its key. LMDB allows keys of 511 bytes, and each byte may need two.
pub(super) const MAX_KEY_TEXT_BYTES: usize = 64;

/// Above every part of a value, which has two more bytes.
const ABOVE_PARTS: [u8; 3] = [u8::MAX; 3];

const PRESENT: u8 = 0;
const NUMBER: u8 = 1;
const INSTANT: u8 = 2;
const TEXT: u8 = 3;

const END: [u8; 2] = [0, 0];
const CUT: [u8; 2] = [0, 1];

/// The keys of a tag's values.
#[derive(Debug, Clone)]
pub(super) struct ValueKeys {
    /// What all of them begin with.
    tag: Vec<u8>,
}

impl ValueKeys {
    /// `field` is the part before the digest of the tag's key.
    pub(super) fn new(mut field: Vec<u8>, key: &str) -> Self {
        field.extend_from_slice(&digest::<12>(key.as_bytes()));
        Self { tag: field }
    }

    fn of_type(&self, kind: u8, value: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.tag.len() + 1 + value.len() + 2);
        key.extend_from_slice(&self.tag);
        key.push(kind);
        key.extend_from_slice(value);
        key
    }

    /// The key of the points that have a value which is not empty.
    pub(super) fn present(&self) -> Vec<u8> {
        self.of_type(PRESENT, &[])
    }

    pub(super) fn number(&self, number: Number) -> Vec<u8> {
        self.of_type(NUMBER, &number.to_ordered_bytes())
    }

    pub(super) fn instant(&self, at: Instant) -> Vec<u8> {
        self.of_type(INSTANT, &at.to_ordered_bytes())
    }

    pub(super) fn text(&self, text: &str) -> Vec<u8> {
        let mut key = self.text_prefix(text);
        if text.len() > MAX_KEY_TEXT_BYTES {
            key.extend_from_slice(&CUT);
            key.extend_from_slice(&digest::<16>(text.as_bytes()));
        } else {
            key.extend_from_slice(&END);
        }
        key
    }

    /// What the keys of texts that begin with this text begin with, as far as keys have their bytes.
    pub(super) fn text_prefix(&self, text: &str) -> Vec<u8> {
        let first = text.as_bytes().get(..MAX_KEY_TEXT_BYTES).unwrap_or(text.as_bytes());
        let mut key = self.of_type(TEXT, &[]);
        for byte in first {
            key.push(*byte);
            if *byte == 0 {
                key.push(u8::MAX);
            }
        }
        key
    }

    /// What the keys of longer texts begin with whose first bytes are those of this text, which is longer, too.
    pub(super) fn cut_texts_like(&self, text: &str) -> Vec<u8> {
        [&self.text_prefix(text)[..], &CUT].concat()
    }

    /// The keys of all values of the type that a key has, from the one to the other.
    pub(super) fn of_same_type(&self, key: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let kind = key.get(self.tag.len()).copied().unwrap_or(TEXT);
        // An empty text is no value.
        let first = if kind == TEXT { above(self.text("")) } else { self.of_type(kind, &[]) };
        (first, self.of_type(kind, &[u8::MAX; 16]))
    }
}

/// The key above all parts of the value with this key, or of the values that begin with it and are cut.
pub(super) fn above(mut key: Vec<u8>) -> Vec<u8> {
    key.extend_from_slice(&ABOVE_PARTS);
    key
}

/// The first `N` bytes of the SHA-256.
pub(super) fn digest<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut short = [0; N];
    short.iter_mut().zip(Sha256::digest(bytes)).for_each(|(to, from)| *to = from);
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> ValueKeys {
        ValueKeys::new(vec![0, 1, 3], "key")
    }

    proptest! {
        #[test]
        fn keys_of_texts_sort_like_texts(a in "[\\x00\\x01a\u{ff}語]{0,40}", b in "[\\x00\\x01a\u{ff}語]{0,40}") {
            let (x, y) = (keys().text(&a), keys().text(&b));
            prop_assert_eq!(x == y, a == b);
            let (cut_a, cut_b) = (a.len() > MAX_KEY_TEXT_BYTES, b.len() > MAX_KEY_TEXT_BYTES);
            let undecided = cut_a && cut_b && a.as_bytes()[..64] == b.as_bytes()[..64];
            if undecided {
                prop_assert!(y.starts_with(&keys().cut_texts_like(&a)));
            } else {
                prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            }
            prop_assert_eq!(above(x.clone()).cmp(&y), if a == b { std::cmp::Ordering::Greater } else { x.cmp(&y) });
            prop_assert!(x.len() < 400);
            if b.len() <= MAX_KEY_TEXT_BYTES {
                prop_assert_eq!(x.starts_with(&keys().text_prefix(&b)), a.starts_with(&b));
            }
        }
    }
}
