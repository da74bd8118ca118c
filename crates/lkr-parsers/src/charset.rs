mod cyrillic;
mod east_asian;
mod ebcdic;
mod han;
mod iso_2022_kr;
mod johab;
mod plausible;
mod wide;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Decoded text and its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text without its byte order mark. UTF-8 is unchanged.
    pub text: Cow<'a, str>,
    /// The name of the encoding.
    pub encoding: &'static str,
    /// Whether characters were lost.
    pub lossy: bool,
    /// Whether the encoding was guessed from too few or unusual characters, so that another one may be right.
    pub unsure: bool,
}

impl Decoded<'_> {
    /// The warnings for the user, such as one about lost characters.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let encoding = self.encoding;
        let lost = self.lossy.then(|| format!("some characters could not be read as {encoding}"));
        let unsure = self.unsure.then(|| {
            format!("the encoding {encoding} was guessed and may be wrong; if the text is wrong, save the file as UTF-8")
        });
        lost.into_iter().chain(unsure)
    }
}

/// How many bytes, from the first non-ASCII byte on, are used to detect the encoding.
const SAMPLE_BYTES: usize = 1024 * 1024;

/// Decodes `bytes`. The first of these decides: a byte order mark, the `declared` encoding if it has no errors, valid
/// UTF-8, and a guess from the bytes.
///
/// UTF-8 without a byte order mark is unchanged. In all other encodings, control characters without a meaning in text are
/// removed.
#[must_use]
pub fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Decoded<'a> {
    with_byte_order_mark(bytes)
        .or_else(|| decode_declared(bytes, declared?))
        .or_else(|| if bytes.contains(&0) { wide::guess(bytes) } else { None })
        .or_else(|| iso_2022_jp(bytes))
        .or_else(|| iso_2022_kr::guess(bytes))
        .or_else(|| std::str::from_utf8(bytes).ok().map(|text| utf8(Cow::Borrowed(text))))
        .or_else(|| mostly_utf8(bytes))
        .or_else(|| ebcdic::guess(bytes))
        .or_else(|| wide::guess_han(bytes))
        .or_else(|| johab::guess(bytes))
        .unwrap_or_else(|| detect(bytes))
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

/// Text that was valid UTF-8.
const fn utf8(text: Cow<'_, str>) -> Decoded<'_> {
    Decoded { text, encoding: "UTF-8", lossy: false, unsure: false }
}

/// Decodes bytes that begin with a byte order mark.
fn with_byte_order_mark(bytes: &[u8]) -> Option<Decoded<'_>> {
    if let Some(wide) = wide::with_byte_order_mark(bytes) {
        return Some(wide);
    }
    let (encoding, length) = Encoding::for_bom(bytes)?;
    Some(read(bytes.get(length..)?, encoding))
}

/// Decodes bytes with the declared encoding, if they are valid in it.
///
/// Any bytes are valid in a single-byte encoding, and nearly any in UTF-16, so such a declaration is ignored if the bytes
/// are UTF-8.
fn decode_declared<'a>(bytes: &'a [u8], declared: &str) -> Option<Decoded<'a>> {
    let label = declared.trim();
    let Some(encoding) = Encoding::for_label(label.as_bytes()) else {
        return decode_rare(bytes, &label.to_ascii_lowercase());
    };
    let never_fails = encoding.is_single_byte() || encoding == UTF_16LE || encoding == UTF_16BE;
    if encoding == UTF_8 || (never_fails && std::str::from_utf8(bytes).is_ok()) {
        return None;
    }
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some(without_control_characters(text, encoding.name(), false))
}

/// Decodes bytes with a declared encoding that `encoding_rs` does not have.
fn decode_rare<'a>(bytes: &'a [u8], label: &str) -> Option<Decoded<'a>> {
    if std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    match label {
        "ibm855" | "cp855" | "855" => Some(cyrillic::ibm855(bytes)),
        "johab" | "cp1361" | "ms1361" | "x-johab" => {
            Some(johab::read(bytes)).filter(|decoded| !decoded.lossy)
        }
        _ => None,
    }
}

/// Decodes ISO-2022-JP, which marks Japanese characters with escape sequences. Terminal output does not use these.
fn iso_2022_jp(bytes: &[u8]) -> Option<Decoded<'_>> {
    let is_escape = |window: &[u8]| matches!(window, b"\x1b$B" | b"\x1b$@");
    if !bytes.is_ascii() || !bytes.windows(3).any(is_escape) {
        return None;
    }
    let text = ISO_2022_JP.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some(without_control_characters(text, ISO_2022_JP.name(), false))
}

/// Decodes UTF-8 with few errors, such as text that was cut within a character.
fn mostly_utf8(bytes: &[u8]) -> Option<Decoded<'_>> {
    let (mut wide, mut errors) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        errors += usize::from(!chunk.invalid().is_empty());
    }
    let cut_at_the_end =
        errors == 1 && bytes.utf8_chunks().last().is_some_and(|chunk| chunk.invalid().len() > 1);
    (wide > 0 && (cut_at_the_end || errors.saturating_mul(20) <= wide)).then(|| read(bytes, UTF_8))
}

/// Decodes bytes with the encoding that statistics suggest.
fn detect(bytes: &[u8]) -> Decoded<'_> {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or_default().saturating_sub(2);
    let sample = bytes.get(first..bytes.len().min(first.saturating_add(SAMPLE_BYTES))).unwrap_or_default();
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, first + sample.len() == bytes.len());
    let guess = detector.guess(None, Utf8Detection::Deny);
    let decoded = read(bytes, guess);
    let doubtful = east_asian::is_doubtful(sample, guess);
    let unsure = doubtful.unwrap_or_else(|| plausible::is_doubtful(&decoded.text));
    let cyrillic = cyrillic::choose(sample);
    let is_guessed = cyrillic::is_known(guess);
    let fits_cyrillic = cyrillic.is_cyrillic() && (cyrillic.is_long() || is_guessed);
    if fits_cyrillic && (unsure || is_guessed) {
        return cyrillic.read(bytes);
    }
    // Neither is sure if both fit, nor is a Cyrillic guess that does not fit.
    Decoded { unsure: unsure || fits_cyrillic || is_guessed, ..decoded }
}

fn read<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Decoded<'a> {
    let (text, lossy) = encoding.decode_without_bom_handling(bytes);
    if encoding == UTF_8 && !lossy {
        return utf8(text);
    }
    without_control_characters(text, encoding.name(), lossy)
}

/// Removes control characters that have no meaning in text.
fn without_control_characters<'a>(text: Cow<'a, str>, encoding: &'static str, lossy: bool) -> Decoded<'a> {
    if !text.contains(is_unwanted_control) {
        return Decoded { text, encoding, lossy, unsure: false };
    }
    let text = text.chars().filter(|c| !is_unwanted_control(*c)).collect::<String>();
    Decoded { text: Cow::Owned(text), encoding, lossy: true, unsure: false }
}

/// Whether a control character is neither a tab nor the end of a line or page.
fn is_unwanted_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}')
}

#[cfg(test)]
mod tests;
