//! Encodes text for tests.

use std::collections::HashMap;

use encoding_rs::{EUC_KR, Encoding};
use lkr_parsers::decode;

/// The bytes of a text in an encoding; `None` if it cannot be written in it.
pub(crate) fn encode(name: &str, text: &str) -> Option<Vec<u8>> {
    match name {
        "ISO-2022-KR" => iso_2022_kr(text),
        "IBM855" => single_bytes(text, name),
        "Johab" => johab(text),
        _ => known(Encoding::for_label(name.as_bytes())?, text),
    }
}

fn known(encoding: &'static Encoding, text: &str) -> Option<Vec<u8>> {
    let (bytes, _, has_errors) = encoding.encode(text);
    (!has_errors).then(|| bytes.into_owned())
}

fn iso_2022_kr(text: &str) -> Option<Vec<u8>> {
    let mut out = b"\x1b$)C\n".to_vec();
    let mut shifted = false;
    for c in text.chars() {
        let bytes = known(EUC_KR, c.encode_utf8(&mut [0; 4]))?;
        if shifted == c.is_ascii() {
            out.push(if shifted { 0x0f } else { 0x0e });
            shifted = !shifted;
        }
        if bytes.iter().any(|byte| (0x80..0xa1).contains(byte)) {
            return None;
        }
        out.extend(bytes.iter().map(|byte| byte & 0x7f));
    }
    Some(out)
}

/// The inverse of decoding each byte.
fn single_bytes(text: &str, name: &str) -> Option<Vec<u8>> {
    let decoded = |byte: u8| decode(&[b'\xfe', byte], Some(name)).text.chars().nth(1);
    let table: HashMap<char, u8> = (0..=255).filter_map(|byte| Some((decoded(byte)?, byte))).collect();
    text.chars().map(|c| table.get(&c).copied()).collect()
}

/// Syllables by their consonants and vowels. Signs are not needed.
fn johab(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(u8::try_from(c).ok()?);
            continue;
        }
        let index = u32::from(c).checked_sub(0xac00).filter(|index| *index < 11_172)?;
        let (first, vowel, last) = (index / 588, index / 28 % 21, index % 28);
        let vowel = vowel + 3 + 2 * [5, 11, 17].iter().filter(|limit| vowel >= **limit).count() as u32;
        let last = if last > 16 { last + 2 } else { last + 1 };
        out.extend(u16::try_from(0x8000 | (first + 2) << 10 | vowel << 5 | last).ok()?.to_be_bytes());
    }
    Some(out)
}
