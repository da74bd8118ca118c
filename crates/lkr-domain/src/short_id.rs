//! Ids in few characters, for records of which there are very many.

use crate::{hex, id::parse_hex};

/// The digits of an id in base 64.
const DIGITS: usize = 22;

/// A text that is mostly an id, in few characters; [`restore_id`] with the same `like` is the inverse.
///
/// An id becomes up to 22 digits in base 64, without those with which `like` begins, too: the first eight of ids that one clock made
/// in the same millisecond. Any other text follows a `=`.
///
/// ```
/// let like = [7; 16];
/// for text in ["019a0c5e2f4b7c3d8e9f0a1b2c3d4e5f", "no id", ""] {
///     let short = lkr_domain::shorten_id(text, &like);
///     assert_eq!(lkr_domain::restore_id(&short, &like).as_deref(), Some(text));
/// }
/// ```
#[must_use]
pub fn shorten_id(text: &str, like: &[u8; 16]) -> String {
    let Ok(id) = parse_hex(text) else { return format!("={text}") };
    let (id, like) = (digits(&id), digits(like));
    let shared = id.iter().zip(&like).take_while(|(own, other)| own == other).count();
    id.iter().skip(shared).map(|&digit| char::from(digit)).collect()
}

/// The text that [`shorten_id`] shortened; `None` if `short` is not from there.
#[must_use]
pub fn restore_id(short: &str, like: &[u8; 16]) -> Option<String> {
    if let Some(text) = short.strip_prefix('=') {
        return Some(text.to_owned());
    }
    let shared = DIGITS.checked_sub(short.len())?;
    let mut id = 0_u128;
    for digit in digits(like).into_iter().take(shared).chain(short.bytes()) {
        id = id.checked_mul(64)? | u128::from(value_of(digit)?);
    }
    Some(hex(&id.to_be_bytes()))
}

/// The digits of an id, the first of which has two bits.
fn digits(id: &[u8; 16]) -> [u8; DIGITS] {
    let id = u128::from_be_bytes(*id);
    std::array::from_fn(|at| digit_of((id >> (6 * (DIGITS - 1 - at))) as u8 & 63))
}

/// The digit of a value below 64.
const fn digit_of(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        10..=35 => b'A' + (value - 10),
        36..=61 => b'a' + (value - 36),
        62 => b'-',
        _ => b'_',
    }
}

const fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TaskId;

    proptest! {
        #[test]
        fn restored_id_is_the_shortened_one(id: [u8; 16], like: [u8; 16], shared in 0_usize..=16) {
            let mut id = id;
            id.iter_mut().zip(&like).take(shared).for_each(|(byte, other)| *byte = *other);
            let text = hex(&id);
            let short = shorten_id(&text, &like);
            prop_assert!(short.len() <= DIGITS - shared * 8 / 6);
            prop_assert_eq!(restore_id(&short, &like), Some(text));
        }

        #[test]
        fn restored_text_is_the_shortened_one(text: String, like: [u8; 16]) {
            prop_assert_eq!(restore_id(&shorten_id(&text, &like), &like), Some(text));
        }

        #[test]
        fn any_text_can_be_restored_or_refused(short: String, like: [u8; 16]) {
            if let Some(text) = restore_id(&short, &like) {
                prop_assert_eq!(restore_id(&shorten_id(&text, &like), &like), Some(text));
            }
        }
    }

    #[test]
    fn ids_of_one_moment_share_digits() {
        let (one, other) = (TaskId::new(), TaskId::new());
        let short = shorten_id(&other.to_string(), one.as_bytes());
        assert!(short.len() <= DIGITS - 5, "{short}");
        assert_eq!(shorten_id(&one.to_string(), one.as_bytes()), "");
    }

    #[test]
    fn text_that_is_no_short_id_is_refused() {
        let like = [0xff; 16];
        assert_eq!(restore_id("", &like), Some("f".repeat(32)));
        for short in ["+", "é", " ", "4000000000000000000000", "00000000000000000000000"] {
            assert_eq!(restore_id(short, &like), None, "{short}");
        }
    }
}
