//! What content is made of below its operations.

use lopdf::{Dictionary, Object};

/// Whether a byte parts others and has no other meaning.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

/// Whether a byte is a part of names, numbers and operators.
pub(super) const fn is_regular(byte: u8) -> bool {
    !is_blank(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// What a hexadecimal digit stands for.
pub(super) fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// The dictionary of these keys and values.
pub(super) fn paired(items: Vec<Object>) -> Dictionary {
    let (mut dictionary, mut items) = (Dictionary::new(), items.into_iter());
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        if let Object::Name(key) = key {
            dictionary.set(key, value);
        }
    }
    dictionary
}

/// A number as viewers read it: signs beyond the first have no meaning, nor has what follows a second point.
pub(super) fn number(text: &[u8]) -> Object {
    let is_negative = text.first() == Some(&b'-');
    let text = text.iter().copied().filter(|byte| !matches!(byte, b'+' | b'-'));
    let (mut whole, mut scale, mut has_point) = (0.0_f64, 1.0_f64, false);
    for byte in text {
        match byte {
            b'.' if has_point => break,
            b'.' => has_point = true,
            byte => {
                whole = whole * 10.0 + f64::from(byte - b'0');
                scale *= if has_point { 10.0 } else { 1.0 };
            }
        }
    }
    let number = if is_negative { -whole / scale } else { whole / scale };
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large becomes infinite")]
    Object::Real(if number.is_finite() { number as f32 } else { 0.0 })
}
