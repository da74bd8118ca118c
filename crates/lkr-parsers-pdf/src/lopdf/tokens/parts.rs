//! Lexical helpers for content streams.

use lopdf::{Dictionary, Object};

/// Whether a byte is white space.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

/// Whether a byte can be part of names, numbers and operators.
pub(super) const fn is_regular(byte: u8) -> bool {
    !is_blank(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// The value of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// A dictionary from alternating keys and values.
pub(super) fn paired(items: Vec<Object>) -> Dictionary {
    let (mut dictionary, mut items) = (Dictionary::new(), items.into_iter());
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        if let Object::Name(key) = key {
            dictionary.set(key, value);
        }
    }
    dictionary
}

/// Parses a number like viewers do: signs after the first one are ignored, as is everything after a second point.
pub(super) fn number(text: &[u8]) -> Object {
    let is_negative = text.first() == Some(&b'-');
    let text = text.iter().copied().filter(|byte| !matches!(byte, b'+' | b'-'));
    let (mut digits, mut scale, mut has_point) = (0.0_f64, 1.0_f64, false);
    for byte in text {
        match byte {
            b'.' if has_point => break,
            b'.' => has_point = true,
            byte => {
                digits = digits * 10.0 + f64::from(byte - b'0');
                scale *= if has_point { 10.0 } else { 1.0 };
            }
        }
    }
    let number = if is_negative { -digits / scale } else { digits / scale };
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large becomes infinite")]
    Object::Real(if number.is_finite() { number as f32 } else { 0.0 })
}
