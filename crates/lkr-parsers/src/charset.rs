mod ebcdic;
mod han;
mod wide;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes become text, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text without its byte order mark. It is what came in wherever that is UTF-8.
    pub text: Cow<'a, str>,
    /// The name of the encoding that was read.
    pub encoding: &'static str,
    /// Whether characters were lost.
    pub lossy: bool,
}

/// How many bytes from the first one that is not ASCII on tell the encoding.
const SAMPLE_BYTES: usize = 1024 * 1024;

/// Reads `bytes` in the encoding that the byte order mark names, else in the `declared` one where that has no errors,
/// else as UTF-8 where they are, else as what they look like.
///
/// UTF-8 without a mark is answered as it is. Elsewhere, control characters that mean nothing in a text are left out.
#[must_use]
pub fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Decoded<'a> {
    marked(bytes)
        .or_else(|| as_declared(bytes, declared?))
        .or_else(|| if bytes.contains(&0) { wide::guess(bytes) } else { None })
        .or_else(|| iso_2022_jp(bytes))
        .or_else(|| std::str::from_utf8(bytes).ok().map(|text| exact(Cow::Borrowed(text))))
        .or_else(|| nearly_utf8(bytes))
        .or_else(|| ebcdic::guess(bytes))
        .or_else(|| wide::guess_han(bytes))
        .unwrap_or_else(|| detected(bytes))
}

/// The charset parameter of a media type, such as `text/html; charset="utf-8"`.
#[must_use]
pub fn charset_of(media_type: &str) -> Option<&str> {
    let parameters = media_type.split(';').skip(1);
    let charset = parameters.filter_map(|parameter| parameter.split_once('=')).find_map(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).trim())
    });
    charset.filter(|charset| !charset.is_empty())
}

/// A text in UTF-8, as it came.
const fn exact(text: Cow<'_, str>) -> Decoded<'_> {
    Decoded { text, encoding: "UTF-8", lossy: false }
}

/// Bytes that begin with a byte order mark.
fn marked(bytes: &[u8]) -> Option<Decoded<'_>> {
    if let Some(wide) = wide::marked(bytes) {
        return Some(wide);
    }
    let (encoding, length) = Encoding::for_bom(bytes)?;
    Some(read(bytes.get(length..)?, encoding))
}

/// Bytes in the encoding that their sender declared, if they can be.
///
/// In an encoding of one byte a character nothing can be wrong, nor much in UTF-16, so neither is believed where the
/// bytes are UTF-8.
fn as_declared<'a>(bytes: &'a [u8], declared: &str) -> Option<Decoded<'a>> {
    let encoding = Encoding::for_label(declared.trim().as_bytes())?;
    let anything_goes = encoding.is_single_byte() || encoding == UTF_16LE || encoding == UTF_16BE;
    if encoding == UTF_8 || (anything_goes && std::str::from_utf8(bytes).is_ok()) {
        return None;
    }
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some(cleaned(text, encoding.name(), false))
}

/// Japanese in seven bits, which tells by escapes where its characters begin. No text on a terminal has these.
fn iso_2022_jp(bytes: &[u8]) -> Option<Decoded<'_>> {
    let is_escape = |window: &[u8]| matches!(window, b"\x1b$B" | b"\x1b$@");
    if !bytes.is_ascii() || !bytes.windows(3).any(is_escape) {
        return None;
    }
    let text = ISO_2022_JP.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some(cleaned(text, ISO_2022_JP.name(), false))
}

/// UTF-8 with few errors, such as a text that was cut in the middle of a character.
fn nearly_utf8(bytes: &[u8]) -> Option<Decoded<'_>> {
    let (mut wide, mut errors) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        errors += usize::from(!chunk.invalid().is_empty());
    }
    let cut_at_the_end =
        errors == 1 && bytes.utf8_chunks().last().is_some_and(|chunk| chunk.invalid().len() > 1);
    (wide > 0 && (cut_at_the_end || errors.saturating_mul(20) <= wide)).then(|| read(bytes, UTF_8))
}

/// Bytes in the encoding that their statistics suggest.
fn detected(bytes: &[u8]) -> Decoded<'_> {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or_default().saturating_sub(2);
    let sample = bytes.get(first..bytes.len().min(first.saturating_add(SAMPLE_BYTES))).unwrap_or_default();
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, first + sample.len() == bytes.len());
    read(bytes, detector.guess(None, Utf8Detection::Deny))
}

fn read<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Decoded<'a> {
    let (text, lossy) = encoding.decode_without_bom_handling(bytes);
    if encoding == UTF_8 && !lossy {
        return exact(text);
    }
    cleaned(text, encoding.name(), lossy)
}

/// A text without the control characters that mean nothing in one.
fn cleaned<'a>(text: Cow<'a, str>, encoding: &'static str, lossy: bool) -> Decoded<'a> {
    if !text.contains(is_noise) {
        return Decoded { text, encoding, lossy };
    }
    let text = text.chars().filter(|c| !is_noise(*c)).collect::<String>();
    Decoded { text: Cow::Owned(text), encoding, lossy: true }
}

/// Whether a control character is neither a tab nor the end of a line or page.
fn is_noise(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}')
}

#[cfg(test)]
mod tests;
