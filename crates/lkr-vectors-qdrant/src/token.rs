//! Tokens: what filters look up by equality. A token is a digest of a tag's key and of what its value equals, in the form
//! of a UUID, so that one compact index answers for all keys and for values of any length.

use lkr_domain::filter::{Instant, Number};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The kinds of tokens.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Kind {
    Text = 1,
    Number = 2,
    Instant = 3,
    Exists = 4,
    Key = 5,
}

/// The token of a tag with this very value.
pub(crate) fn text(key: &str, value: &str) -> String {
    token(Kind::Text, key, value.as_bytes())
}

/// The token of a tag whose value is this number, in any spelling.
pub(crate) fn number(key: &str, value: Number) -> String {
    token(Kind::Number, key, &value.to_ordered_bytes())
}

/// The token of a tag whose value is this instant, in any spelling.
pub(crate) fn instant(key: &str, value: Instant) -> String {
    token(Kind::Instant, key, &value.to_ordered_bytes())
}

/// The token of a tag with any value that is not empty.
pub(crate) fn exists(key: &str) -> String {
    token(Kind::Exists, key, &[])
}

/// The tokens of a tag.
pub(crate) fn of_tag(key: &str, value: &str) -> impl Iterator<Item = String> {
    let exists = (!value.is_empty()).then(|| exists(key));
    let number = Number::parse(value).map(|value| number(key, value));
    let instant = Instant::parse(value).map(|value| instant(key, value));
    [Some(text(key, value)), exists, number, instant].into_iter().flatten()
}

/// A digest of a key, in hexadecimal.
pub(crate) fn of_key(key: &str) -> String {
    token(Kind::Key, key, &[]).replace('-', "")
}

/// The first 16 bytes of a SHA-256. The length of the key separates it from the value.
fn token(kind: Kind, key: &str, value: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update([kind as u8]);
    digest.update((key.len() as u64).to_le_bytes());
    digest.update(key.as_bytes());
    digest.update(value);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest.finalize()).for_each(|(to, from)| *to = from);
    Uuid::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_separate_keys_values_and_kinds() {
        let mut tokens =
            vec![text("a", "b1"), text("ab", "1"), text("a", ""), text("", "a"), exists("a"), of_key("a")];
        tokens.extend(["1", "2026-01-01"].iter().flat_map(|value| of_tag(value, value)));
        assert_eq!(of_tag("a", "1").count(), 3);
        assert_eq!(of_tag("a", "").count(), 1);
        let total = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), total);
        assert_eq!(of_tag("a", "1.0").nth(2), of_tag("a", "+01").nth(2), "one number in two spellings");
    }
}
