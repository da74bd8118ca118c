use infer::MatcherType;

use crate::{Error, ErrorKind, Format, Result, charset::decode};

/// The `%PDF` of a PDF file stands within so many bytes: mail headers and the like may come before.
const PDF_HEADER_WITHIN: usize = 1024;

/// How many bytes are looked at to tell text from other data.
const SAMPLE_BYTES: usize = 64 * 1024;

/// The first bytes of an OLE compound file: old Word documents, and the shell around encrypted new ones.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// Refuses bytes that are clearly not of `format`. What is merely odd passes: its parser will tell.
///
/// # Errors
/// `Input` for a clear mismatch, `Encrypted` for a DOCX file that needs a password.
pub fn check(format: Format, bytes: &[u8]) -> Result<()> {
    match format {
        Format::Pdf => pdf(bytes),
        Format::Docx => docx(bytes),
        Format::Text | Format::Markdown | Format::Html => text(format, bytes),
    }
}

fn pdf(bytes: &[u8]) -> Result<()> {
    if has_pdf_header(bytes) {
        return Ok(());
    }
    other(bytes).map_or(Ok(()), |held| Err(mismatch(Format::Pdf, &held)))
}

fn docx(bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"PK") {
        return Ok(());
    }
    if bytes.starts_with(OLE) {
        return Err(compound(bytes));
    }
    if has_pdf_header(bytes) {
        return Err(mismatch(Format::Docx, Format::Pdf.describe()));
    }
    other(bytes).map_or(Ok(()), |held| Err(mismatch(Format::Docx, &held)))
}

/// Text may begin with the marks of any file, as "BMW" does with those of a picture, so only other data is refused.
fn text(format: Format, bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"%PDF-") {
        return Err(mismatch(format, Format::Pdf.describe()));
    }
    if bytes.starts_with(OLE) {
        return Err(mismatch(format, "an old Office document"));
    }
    if !is_binary(bytes) {
        return Ok(());
    }
    let held = other(bytes).unwrap_or_else(|| "data that is no text".to_owned());
    Err(mismatch(format, &held))
}

fn has_pdf_header(bytes: &[u8]) -> bool {
    bytes.windows(4).take(PDF_HEADER_WITHIN).any(|window| window == b"%PDF")
}

/// A compound file named as DOCX: encrypted where it holds the stream that encrypted packages lie in.
fn compound(bytes: &[u8]) -> Error {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if bytes.windows(name.len()).any(|window| window == name) {
        return Error::new(ErrorKind::Encrypted, CHECK, "it is a Word document that needs a password");
    }
    mismatch(Format::Docx, "an old Office document")
}

/// Whether bytes hold so many control characters, without being Unicode text, that they are no text.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let is_control =
        |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0x1b);
    let controls = sample.iter().filter(is_control).count();
    let zeros = sample.iter().filter(|byte| **byte == 0).count();
    let is_wide = || match decode(sample, None).encoding {
        // Bytes of ASCII with zeros among them are UTF-8 too.
        "UTF-8" => zeros.saturating_mul(2) <= sample.len(),
        encoding => encoding.starts_with("UTF-"),
    };
    is_wave(bytes) || (controls.saturating_mul(50) > sample.len() && !is_wide())
}

/// Whether bytes begin as sound or a film in a RIFF file does, which may be silent: a text has no length there.
fn is_wave(bytes: &[u8]) -> bool {
    let form = bytes.get(8..12);
    bytes.starts_with(b"RIFF") && matches!(form, Some(b"WAVE" | b"AVI " | b"WEBP"))
}

/// What the bytes hold instead, in words, where their beginning tells.
fn other(bytes: &[u8]) -> Option<String> {
    if is_html(bytes) {
        return Some(Format::Html.describe().to_owned());
    }
    let found = infer::get(bytes)?;
    let name = match found.extension() {
        "jpg" => "JPEG".to_owned(),
        extension => extension.to_uppercase(),
    };
    match found.matcher_type() {
        MatcherType::Image => Some(format!("a picture ({name})")),
        MatcherType::Audio => Some(format!("sound ({name})")),
        MatcherType::Video => Some(format!("a film ({name})")),
        MatcherType::Archive => Some(format!("an archive ({name})")),
        MatcherType::Text => None,
        _ => Some(format!("data of the type {}", found.mime_type())),
    }
}

fn is_html(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins =
        |mark: &str| bytes.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark.as_bytes()));
    begins("<!doctype html") || begins("<html")
}

const CHECK: &str = "look at the file";

fn mismatch(format: Format, held: &str) -> Error {
    let reason = format!("it is named as {} but holds {held}", format.describe());
    Error::new(ErrorKind::Input, CHECK, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00";

    #[track_caller]
    fn refused(format: Format, bytes: &[u8], reason: &str) {
        let error = check(format, bytes).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Input, format!("look at the file: {reason}"))
        );
    }

    #[test]
    fn clear_mismatches_are_refused() {
        refused(Format::Pdf, JPEG, "it is named as a PDF file but holds a picture (JPEG)");
        refused(Format::Pdf, b"\n<HTML><body>x", "it is named as a PDF file but holds an HTML page");
        refused(Format::Pdf, b"PK\x03\x04rest of it", "it is named as a PDF file but holds an archive (ZIP)");
        refused(Format::Docx, JPEG, "it is named as a DOCX file but holds a picture (JPEG)");
        refused(Format::Docx, b"%PDF-1.7", "it is named as a DOCX file but holds a PDF file");
        refused(Format::Text, b"%PDF-1.7", "it is named as a text file but holds a PDF file");
        refused(Format::Html, JPEG, "it is named as an HTML page but holds a picture (JPEG)");
        let zeros = [&b"head"[..], &[0; 5000], b"tail"].concat();
        refused(Format::Text, &zeros, "it is named as a text file but holds data that is no text");
        refused(Format::Text, &[0; 5], "it is named as a text file but holds data that is no text");
        let wave = b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0";
        refused(Format::Text, wave, "it is named as a text file but holds sound (WAV)");
        refused(Format::Text, b"RIFFaaaaWAVEfmt ", "it is named as a text file but holds sound (WAV)");
        let noise: Vec<u8> = (0..=255_u8).cycle().take(5000).collect();
        refused(Format::Markdown, &noise, "it is named as a Markdown file but holds data that is no text");
    }

    #[test]
    fn old_and_encrypted_documents_are_told_apart() {
        let old = [OLE, &[0; 600]].concat();
        refused(Format::Docx, &old, "it is named as a DOCX file but holds an old Office document");
        let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let error = check(Format::Docx, &[&old[..], &name].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Encrypted);
    }

    #[test]
    fn what_is_merely_odd_passes() {
        let wide: Vec<u8> = "wide wörds".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wider: Vec<u8> = "wider wörds".chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
        for (format, bytes) in [
            (Format::Pdf, &b"mail header\n%PDF-1.4"[..]),
            (Format::Pdf, b"who knows"),
            (Format::Pdf, b""),
            (Format::Docx, b"PK\x03\x04"),
            (Format::Docx, b"\0\0\0"),
            (Format::Text, b"BMW builds cars"),
            (Format::Text, b"<html>"),
            (Format::Text, b"caf\xe9"),
            (Format::Text, &wide),
            (Format::Text, &wider),
            (Format::Markdown, b"\x1b[1mbold\x1b[0m"),
            (Format::Html, b"words"),
            (Format::Html, b"\0\0 a"),
            (Format::Text, b"RIFF is a form of files"),
            (Format::Text, b"\x1b$B$3$s\x1b(B"),
            (Format::Text, b""),
        ] {
            assert!(check(format, bytes).is_ok(), "{format:?} {bytes:?}");
        }
    }
}
