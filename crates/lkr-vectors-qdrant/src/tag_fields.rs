//! Tags as fields of a payload.
//!
//! `tokens` holds the tokens of all tags; nearly all filters look there. `tags` holds, by the name of the key, what the
//! other tests compare: the text itself (prefixes), its number, its instant, and its bytes in numbers that sort like the
//! text.

use lkr_domain::filter::{Instant, Number};
use lkr_vectors::Tags;
use qdrant_client::qdrant::Value;

use crate::{
    error::{Failure, InternalResult},
    token,
    value::{self, Fields},
};

/// The field with the tokens.
pub(crate) const TOKENS: &str = "tokens";
/// The field with the values by key.
pub(crate) const TAGS: &str = "tags";

const KEY: &str = "key";
pub(crate) const TEXT: &str = "text";
pub(crate) const NUMBER: &str = "number";
pub(crate) const SECONDS: &str = "seconds";
pub(crate) const NANOS: &str = "nanos";
pub(crate) const CHUNKS: &str = "chunks";

/// The bytes that one number holds: 257⁶ is below 2⁵³, up to which doubles are exact.
pub(crate) const CHUNK_BYTES: usize = 6;

/// The longest key that is a name of a field as it is.
const MAX_PLAIN_KEY_BYTES: usize = 48;

/// The fields of a point that its tags decide. Each is replaced as a whole.
pub(crate) fn encode(tags: &Tags) -> Fields {
    let tokens = tags.iter().flat_map(|(key, value)| token::of_tag(key, value)).map(value::text);
    let values = tags.iter().map(|(key, value)| encode_tag(key, value)).collect();
    Fields::from([(TOKENS.to_owned(), value::list(tokens)), (TAGS.to_owned(), value::object(values))])
}

pub(crate) fn decode(payload: &Fields) -> InternalResult<Tags> {
    let values = payload.get(TAGS).and_then(value::as_object).ok_or_else(|| damaged(TAGS))?;
    values.iter().map(|(name, tag)| decode_tag(name, tag).ok_or_else(|| damaged(name))).collect()
}

/// The path of a part of a tag's value.
pub(crate) fn path(key: &str, part: &str) -> String {
    format!("{TAGS}.{}.{part}", field_name(key))
}

/// The name of a key's field: the key, if it is short and has no characters with a meaning in paths.
fn field_name(key: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if (1..=MAX_PLAIN_KEY_BYTES).contains(&key.len()) && key.bytes().all(is_plain) {
        format!("k_{key}")
    } else {
        format!("d_{}", token::of_key(key))
    }
}

fn encode_tag(key: &str, text: &str) -> (String, Value) {
    let name = field_name(key);
    let chunks = chunks(text).map(value::double);
    let mut fields =
        Fields::from([(TEXT.to_owned(), value::text(text)), (CHUNKS.to_owned(), value::list(chunks))]);
    if !name.starts_with("k_") {
        fields.insert(KEY.to_owned(), value::text(key));
    }
    if let Some(number) = Number::parse(text) {
        fields.insert(NUMBER.to_owned(), value::double(number.value()));
    }
    if let Some(at) = Instant::parse(text) {
        let (seconds, nanos) = instant_parts(at);
        fields.insert(SECONDS.to_owned(), value::integer(seconds));
        fields.insert(NANOS.to_owned(), value::integer(nanos));
    }
    (name, value::object(fields))
}

fn decode_tag(name: &str, tag: &Value) -> Option<(String, String)> {
    let fields = value::as_object(tag)?;
    let key = match fields.get(KEY) {
        Some(key) => value::as_text(key)?,
        None => name.strip_prefix("k_")?,
    };
    let text = value::as_text(fields.get(TEXT)?)?;
    Some((key.to_owned(), text.to_owned()))
}

/// Whole seconds since 1970 and the nanoseconds behind them.
pub(crate) fn instant_parts(at: Instant) -> (i64, i64) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = at.to_ordered_bytes();
    let seconds = (u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ (1 << 63)) as i64;
    (seconds, u32::from_be_bytes([i, j, k, l]).into())
}

/// Numbers that sort like texts. Each holds the next six bytes in base 257; the digit 0 is the end of the text. Every
/// text has an end in its last number, so two different texts differ at a position that both have.
pub(crate) fn chunks(text: &str) -> impl Iterator<Item = f64> {
    let bytes = text.as_bytes();
    (0..=bytes.len() / CHUNK_BYTES).map(move |chunk| {
        let digit = |at: usize| bytes.get(chunk * CHUNK_BYTES + at).map_or(0, |byte| u64::from(*byte) + 1);
        (0..CHUNK_BYTES).fold(0, |number, at| number * 257 + digit(at)) as f64
    })
}

fn damaged(field: &str) -> Failure {
    Failure::corrupt(format!("a point's field {field} is damaged"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_sort_like_texts(a in "[\\x00\\x01a\u{ff}語]{0,14}", b in "[\\x00\\x01a\u{ff}語]{0,14}") {
            let (x, y): (Vec<f64>, Vec<f64>) = (chunks(&a).collect(), chunks(&b).collect());
            prop_assert_eq!(x.partial_cmp(&y), Some(a.cmp(&b)));
            prop_assert!(x == y || x.iter().zip(&y).any(|(x, y)| x != y), "they differ within both");
        }

        #[test]
        fn tags_read_back(tags in proptest::collection::btree_map("\\PC{0,60}|[a-z_]{0,9}", "\\PC{0,40}", 0..5)) {
            let tags = Tags::from(tags);
            prop_assert_eq!(decode(&encode(&tags)).unwrap(), tags);
        }
    }

    #[test]
    fn instants_before_1970_have_nanoseconds_that_count_forward() {
        let at = |text| instant_parts(Instant::parse(text).unwrap());
        assert_eq!(at("1969-12-31T23:59:59.5Z"), (-1, 500_000_000));
        assert_eq!(at("1970-01-01T00:00:01.000000001Z"), (1, 1));
    }
}
