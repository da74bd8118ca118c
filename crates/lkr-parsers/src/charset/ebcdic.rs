//! EBCDIC of Western Europe (code page 500), used by mainframes.

use super::Decoded;

/// How many bytes are used to detect the encoding.
const SAMPLE_BYTES: usize = 64 * 1024;

/// The characters from 0x40 on, sixteen in each row.
const TABLE: [&str; 12] = [
    " \u{a0}âäàáãåçñ[.<(+!",
    "&éêëèíîïìß]$*);^",
    "-/ÂÄÀÁÃÅÇÑ¦,%_>?",
    "øÉÊËÈÍÎÏÌ`:#@'=\"",
    "Øabcdefghi«»ðýþ±",
    "°jklmnopqrªºæ¸Æ¤",
    "µ~stuvwxyz¡¿ÐÝÞ®",
    "¢£¥·©§¶¼½¾¬|¯¨´×",
    "{ABCDEFGHI\u{ad}ôöòóõ",
    "}JKLMNOPQR¹ûüùúÿ",
    "\\÷STUVWXYZ²ÔÖÒÓÕ",
    "0123456789³ÛÜÙÚ\u{9f}",
];

/// Decodes `bytes` if most of them are letters, digits and spaces of EBCDIC. Other encodings have no letters at these
/// values.
pub(super) fn guess(bytes: &[u8]) -> Option<Decoded<'_>> {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let words = sample.iter().filter(|byte| is_word(**byte)).count();
    let spaces = sample.iter().filter(|byte| **byte == 0x40).count();
    let blanks = sample.iter().filter(|byte| **byte == 0x20).count();
    let fits = words.saturating_mul(4) >= sample.len().saturating_mul(3)
        && spaces.saturating_mul(25) >= sample.len()
        && blanks.saturating_mul(20) <= spaces;
    fits.then(|| read(bytes))
}

const fn is_word(byte: u8) -> bool {
    matches!(byte, 0x40 | 0x81..=0x89 | 0x91..=0x99 | 0xa2..=0xa9 | 0xc1..=0xc9 | 0xd1..=0xd9 | 0xe2..=0xe9 | 0xf0..=0xf9)
}

fn read(bytes: &[u8]) -> Decoded<'_> {
    let table: Vec<char> = TABLE.iter().flat_map(|row| row.chars()).collect();
    let character = |byte: &u8| match byte {
        0x05 => '\t',
        0x0d => '\r',
        0x15 | 0x25 => '\n',
        // A control character separates words.
        byte => usize::from(*byte).checked_sub(0x40).map_or(' ', |at| table.get(at).copied().unwrap_or(' ')),
    };
    let text: String = bytes.iter().map(character).collect();
    Decoded { text: text.into(), encoding: "IBM500", lossy: false, unsure: false }
}
