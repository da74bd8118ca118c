//! Encodings with two or four bytes for each unit.

use super::{Decoded, UTF_16BE, UTF_16LE, han, is_unwanted_control, without_control_characters};

/// How many bytes are used to detect the encoding.
const SAMPLE_BYTES: usize = 64 * 1024;

/// Decodes UTF-32 with a byte order mark. This comes before `encoding_rs`, which would take the mark for that of UTF-16.
pub(super) fn with_byte_order_mark(bytes: &[u8]) -> Option<Decoded<'_>> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe\0\0") {
        return Some(utf32(rest, ByteOrder::Little));
    }
    bytes.strip_prefix(b"\0\0\xfe\xff").map(|rest| utf32(rest, ByteOrder::Big))
}

/// Decodes UTF-32 or UTF-16 without a byte order mark. They have zero bytes at the same position in most units.
pub(super) fn guess(bytes: &[u8]) -> Option<Decoded<'_>> {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|byte_order| is_utf32(sample, *byte_order))
        .map(|byte_order| utf32(bytes, byte_order))
        // Before UTF-16 with zero bytes, because 一 has a zero byte too.
        .or_else(|| guess_han(bytes))
        .or_else(|| utf16(bytes, sample))
}

/// Decodes Chinese or Japanese UTF-16 without a byte order mark, which may have no zero bytes. The bytes must not be
/// UTF-8.
pub(super) fn guess_han(bytes: &[u8]) -> Option<Decoded<'_>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sample = pairs.get(..SAMPLE_BYTES / 2).unwrap_or(pairs);
    if !rest.is_empty() {
        return None;
    }
    // The end of the sample may split a character.
    let is_half = |pair: &&[u8; 2]| matches!(pair, [_, 0xd8..=0xdb] | [0xd8..=0xdb, _]);
    let sample = sample.split_last().filter(|(last, _)| is_half(last)).map_or(sample, |(_, before)| before);
    let is_little = || han::is_text(sample.iter().map(|pair| u16::from_le_bytes(*pair)));
    let is_big = || han::is_text(sample.iter().map(|pair| u16::from_be_bytes(*pair)));
    let encoding = match (is_little(), is_big()) {
        (true, false) => UTF_16LE,
        (false, true) => UTF_16BE,
        _ => return None,
    };
    Some(super::read(bytes, encoding))
}

#[derive(Debug, Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    const fn unit(self, unit: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(unit),
            Self::Big => u32::from_be_bytes(unit),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Little => "UTF-32LE",
            Self::Big => "UTF-32BE",
        }
    }
}

fn is_utf32(sample: &[u8], byte_order: ByteOrder) -> bool {
    let (units, _) = sample.as_chunks::<4>();
    let is_text =
        |unit: &[u8; 4]| char::from_u32(byte_order.unit(*unit)).is_some_and(|c| !is_unwanted_control(c));
    !units.is_empty() && units.iter().all(is_text)
}

fn utf32(bytes: &[u8], byte_order: ByteOrder) -> Decoded<'_> {
    let (units, rest) = bytes.as_chunks::<4>();
    let mut lossy = !rest.is_empty();
    let read = |unit: &[u8; 4]| char::from_u32(byte_order.unit(*unit));
    let text: String = units.iter().map(|unit| read(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    lossy |= units.iter().any(|unit| read(unit).is_none());
    without_control_characters(text.into(), byte_order.name(), lossy)
}

/// Whether a unit of UTF-16 is a character of ASCII that text has. Most texts have spaces, line ends or signs of these. In
/// the other byte order, some Chinese characters are one (U+4E00), so some Chinese texts without a mark are not detected.
fn is_ascii_text(unit: u16) -> bool {
    u8::try_from(unit).is_ok_and(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'))
}

fn utf16<'a>(bytes: &'a [u8], sample: &[u8]) -> Option<Decoded<'a>> {
    let (units, _) = sample.as_chunks::<2>();
    let ascii = |order: fn([u8; 2]) -> u16| units.iter().filter(|unit| is_ascii_text(order(**unit))).count();
    let (big, little) = (ascii(u16::from_be_bytes), ascii(u16::from_le_bytes));
    let (encoding, high, most, least) =
        if big > little { (UTF_16BE, 0, big, little) } else { (UTF_16LE, 1, little, big) };
    // In bytes that are valid UTF-8 too, half of the units must be ASCII, or nearly all in an alphabet, such as the Cyrillic
    // one: their high bytes are small, where UTF-8 has letters.
    let is_in_alphabet = |unit: &&[u8; 2]| unit.get(high).is_some_and(|byte| *byte < 0x20);
    let in_alphabets = units.iter().filter(is_in_alphabet).count();
    let is_even = bytes.len().is_multiple_of(2);
    let fits = std::str::from_utf8(sample).is_err()
        || most.saturating_mul(2) >= units.len()
        || in_alphabets.saturating_mul(10) >= units.len().saturating_mul(9);
    if !is_even || !fits || most.saturating_mul(50) < units.len() || least.saturating_mul(20) > most {
        return None;
    }
    let (text, _) = encoding.decode_without_bom_handling(units.as_flattened());
    let invalid =
        text.chars().filter(|c| is_unwanted_control(*c) || *c == char::REPLACEMENT_CHARACTER).count();
    if invalid.saturating_mul(100) > units.len() {
        return None;
    }
    Some(super::read(bytes, encoding))
}
