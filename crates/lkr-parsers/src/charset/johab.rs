//! Johab (KS X 1001, annex 3): the encoding of Korean that old word processors use.
//!
//! A syllable has two bytes: a set bit, and five bits each for its first consonant, its vowel and its last consonant. Signs
//! and Chinese characters have the rows of KS X 1001, two rows for each first byte.

use encoding_rs::EUC_KR;

use super::Decoded;

/// How many bytes are used to detect the encoding.
const SAMPLE_BYTES: usize = 64 * 1024;

/// Frequent syllables: together about a third of the syllables of a Korean text.
const FREQUENT: &str = "이다는을의에가고한하지를은로기사서도있어대인리자나해시부정그들";

/// A text with fewer syllables may also be in another encoding.
const MIN_SYLLABLES: usize = 12;

/// First consonants alone, as in the codes from U+3131 on, with those that end a syllable only left out.
const FIRST: [u8; 19] = [0, 1, 3, 6, 7, 8, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];

/// Last consonants alone, as in the codes from U+3131 on.
const LAST: [u8; 27] =
    [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29];

/// Decodes `bytes` if they are Korean text in Johab.
///
/// Nearly all pairs of bytes are a syllable in Johab, but only one in 400 is a frequent one, so bytes in another encoding
/// have few of these.
pub(super) fn guess(bytes: &[u8]) -> Option<Decoded<'_>> {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let (mut syllables, mut frequent, mut others) = (0_usize, 0_usize, 0_usize);
    for c in characters(sample) {
        match c {
            Some(c @ '가'..='힣') => {
                syllables += 1;
                frequent += usize::from(FREQUENT.contains(c));
            }
            Some(c) if c.is_ascii() => {}
            Some(_) => others += 1,
            None => others += 4,
        }
    }
    let fits = frequent.saturating_mul(6) >= syllables && syllables >= others.saturating_mul(2);
    (frequent > 0 && fits).then(|| Decoded { unsure: syllables < MIN_SYLLABLES, ..read(bytes) })
}

/// Decodes `bytes` as Johab.
pub(super) fn read(bytes: &[u8]) -> Decoded<'_> {
    let mut lossy = false;
    let decode = |c: Option<char>| {
        lossy |= c.is_none();
        c.unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let text: String = characters(bytes).map(decode).collect();
    Decoded { lossy, ..super::without_control_characters(text.into(), "Johab", lossy) }
}

/// The characters of `bytes`; `None` for an invalid one.
fn characters(bytes: &[u8]) -> impl Iterator<Item = Option<char>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (c, length) = match *rest {
            [] => return None,
            [byte, ..] if byte.is_ascii() => (Some(char::from(byte)), 1),
            [first, second, ..] => match pair(first, second) {
                // The byte after an invalid one may begin a character.
                None => (None, 1),
                c => (c, 2),
            },
            [_] => (None, 1),
        };
        rest = rest.get(length..).unwrap_or_default();
        Some(c)
    })
}

fn pair(first: u8, second: u8) -> Option<char> {
    if first < 0xd8 { syllable(u32::from(first) << 8 | u32::from(second)) } else { sign(first, second) }
}

/// A syllable or one of its parts.
fn syllable(code: u32) -> Option<char> {
    let first = match code >> 10 & 0x1f {
        1 => None,
        first @ 2..=20 => Some(first - 2),
        _ => return None,
    };
    // Each row of eight has two values that are not used.
    let vowel = match code >> 5 & 0x1f {
        2 => None,
        vowel @ (3..=7 | 10..=15 | 18..=23 | 26..=29) => Some(vowel - 3 - 2 * (vowel / 8)),
        _ => return None,
    };
    let last = match code & 0x1f {
        1 => None,
        last @ 2..=17 => Some(last - 1),
        last @ 19..=29 => Some(last - 2),
        _ => return None,
    };
    let code = match (first, vowel, last) {
        (Some(first), Some(vowel), last) => 0xac00 + (first * 21 + vowel) * 28 + last.unwrap_or(0),
        (Some(first), None, None) => 0x3131 + u32::from(*FIRST.get(usize::try_from(first).ok()?)?),
        (None, Some(vowel), None) => 0x314f + vowel,
        (None, None, Some(last)) => 0x3131 + u32::from(*LAST.get(usize::try_from(last - 1).ok()?)?),
        (None, None, None) => 0x3000,
        _ => return None,
    };
    char::from_u32(code)
}

/// A sign or a Chinese character, by its row and column in KS X 1001.
fn sign(first: u8, second: u8) -> Option<char> {
    let rows = match first {
        // Johab has consonants and vowels as parts of syllables.
        0xda if (0xa1..=0xd3).contains(&second) => return None,
        0xd9..=0xde => 2 * (first - 0xd9),
        0xe0..=0xf9 => 2 * (first - 0xe0) + 41,
        _ => return None,
    };
    let column = match second {
        0x31..=0x7e => second - 0x31,
        0x91..=0xfe => second - 0x43,
        _ => return None,
    };
    let (row, column) = if column < 94 { (rows, column) } else { (rows + 1, column - 94) };
    let code = [0xa1 + row, 0xa1 + column];
    EUC_KR.decode_without_bom_handling_and_without_replacement(&code)?.chars().next()
}
