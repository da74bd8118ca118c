use infer::MatcherType;

use crate::{Error, ErrorKind, Format, Result, charset::decode};

/// The `%PDF` of a PDF file is within this many bytes: mail headers or similar may come before it.
const PDF_HEADER_WITHIN: usize = 1024;

/// How many bytes are sampled to distinguish text from other data.
const SAMPLE_BYTES: usize = 64 * 1024;

/// The first bytes of an OLE compound file, the container of old Word documents and of encrypted DOCX files.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// The first bytes of a document in the Rich Text Format, whose markup is text too.
const RTF: &[u8] = b"{\\rtf1";

const RTF_NAME: &str = "an RTF document";

/// Rejects bytes that are clearly not of `format`. Ambiguous bytes pass, because the parser rejects what it cannot read.
///
/// # Errors
/// `Input` for a clear mismatch, `Damaged` for text with binary data, `Encrypted` for a DOCX file that needs a password.
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
    detected_type(bytes).map_or(Ok(()), |found| Err(mismatch(Format::Pdf, &found)))
}

fn docx(bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"PK") {
        return Ok(());
    }
    if bytes.starts_with(OLE) {
        return Err(compound_file_error(bytes));
    }
    if has_pdf_header(bytes) {
        return Err(mismatch(Format::Docx, Format::Pdf.describe()));
    }
    detected_type(bytes).map_or(Ok(()), |found| Err(mismatch(Format::Docx, &found)))
}

/// Text may begin like another format, as "BMW" begins like a BMP image, so only clear mismatches are rejected.
fn text(format: Format, bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"%PDF-") {
        return Err(mismatch(format, Format::Pdf.describe()));
    }
    if bytes.starts_with(OLE) {
        return Err(mismatch(format, "an old Office document"));
    }
    if bytes.starts_with(RTF) {
        return Err(mismatch(format, RTF_NAME));
    }
    if !is_binary(bytes) {
        return Ok(());
    }
    // A page with control characters is still named correctly: the characters are what is wrong.
    match media_type(bytes) {
        Some(found) => Err(mismatch(format, &found)),
        None => Err(binary(format)),
    }
}

fn has_pdf_header(bytes: &[u8]) -> bool {
    bytes.windows(4).take(PDF_HEADER_WITHIN).any(|window| window == b"%PDF")
}

/// The error for a compound file named as DOCX. It is encrypted if it has the stream of an encrypted package.
fn compound_file_error(bytes: &[u8]) -> Error {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if bytes.windows(name.len()).any(|window| window == name) {
        return Error::new(
            ErrorKind::Encrypted,
            OPERATION,
            "it is a Word document that is protected by a password; save a copy without the password",
        );
    }
    mismatch(Format::Docx, "an old Office document")
}

/// Whether bytes have too many control characters for text, and are neither UTF-16 nor UTF-32, nor shifted with control
/// characters.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let is_control =
        |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0x1b);
    let controls = sample.iter().filter(is_control).count();
    let zeros = sample.iter().filter(|byte| **byte == 0).count();
    let is_wide = || match decode(sample, None).encoding {
        // ASCII with zero bytes is valid UTF-8 too.
        "UTF-8" => zeros.saturating_mul(2) <= sample.len(),
        encoding => encoding.starts_with("UTF-") || encoding == "ISO-2022-KR",
    };
    is_riff_media(bytes) || (controls.saturating_mul(50) > sample.len() && !is_wide())
}

/// Whether bytes begin like audio, video or an image in a RIFF file. Silent audio has few control characters.
fn is_riff_media(bytes: &[u8]) -> bool {
    let form = bytes.get(8..12);
    bytes.starts_with(b"RIFF") && matches!(form, Some(b"WAVE" | b"AVI " | b"WEBP"))
}

/// A description of what the bytes contain, as far as their beginning shows.
fn detected_type(bytes: &[u8]) -> Option<String> {
    if is_html(bytes) { Some(Format::Html.describe().to_owned()) } else { media_type(bytes) }
}

/// As [`detected_type`], for data other than text.
fn media_type(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(RTF) {
        return Some(RTF_NAME.to_owned());
    }
    let found = infer::get(bytes)?;
    let name = match found.extension() {
        "jpg" => "JPEG".to_owned(),
        extension => extension.to_uppercase(),
    };
    match found.matcher_type() {
        MatcherType::Image => Some(format!("an image ({name})")),
        MatcherType::Audio => Some(format!("audio ({name})")),
        MatcherType::Video => Some(format!("a video ({name})")),
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

const OPERATION: &str = "check the file format";

fn mismatch(format: Format, found: &str) -> Error {
    let reason = format!("it is named as {} but contains {found}", format.describe());
    Error::new(ErrorKind::Input, OPERATION, reason)
}

/// The error for text with bytes that text does not have.
fn binary(format: Format) -> Error {
    let reason = format!("it is named as {} but contains binary data; it may be damaged", format.describe());
    Error::new(ErrorKind::Damaged, OPERATION, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00";

    #[track_caller]
    fn assert_binary(format: Format, bytes: &[u8], reason: &str) {
        let error = check(format, bytes).unwrap_err();
        let expected = format!("{reason}; it may be damaged");
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Damaged, expected));
    }

    #[track_caller]
    fn assert_mismatch(format: Format, bytes: &[u8], reason: &str) {
        let error = check(format, bytes).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Input, format!("check the file format: {reason}"))
        );
    }

    #[test]
    fn clear_format_mismatch_is_rejected() {
        assert_mismatch(Format::Pdf, JPEG, "it is named as a PDF file but contains an image (JPEG)");
        assert_mismatch(
            Format::Pdf,
            b"\n<HTML><body>x",
            "it is named as a PDF file but contains an HTML page",
        );
        assert_mismatch(
            Format::Pdf,
            b"PK\x03\x04rest of it",
            "it is named as a PDF file but contains an archive (ZIP)",
        );
        assert_mismatch(Format::Docx, JPEG, "it is named as a DOCX file but contains an image (JPEG)");
        assert_mismatch(Format::Docx, b"%PDF-1.7", "it is named as a DOCX file but contains a PDF file");
        assert_mismatch(Format::Text, b"%PDF-1.7", "it is named as a text file but contains a PDF file");
        assert_mismatch(Format::Html, JPEG, "it is named as an HTML page but contains an image (JPEG)");
        let rtf = b"{\\rtf1\\ansi words}";
        assert_mismatch(Format::Docx, rtf, "it is named as a DOCX file but contains an RTF document");
        assert_mismatch(Format::Text, rtf, "it is named as a text file but contains an RTF document");
        let zeros = [&b"head"[..], &[0; 5000], b"tail"].concat();
        assert_binary(Format::Text, &zeros, "it is named as a text file but contains binary data");
        assert_binary(Format::Text, &[0; 5], "it is named as a text file but contains binary data");
        let wave = b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0";
        assert_mismatch(Format::Text, wave, "it is named as a text file but contains audio (WAV)");
        assert_mismatch(
            Format::Text,
            b"RIFFaaaaWAVEfmt ",
            "it is named as a text file but contains audio (WAV)",
        );
        let noise: Vec<u8> = (0..=255_u8).cycle().take(5000).collect();
        assert_binary(Format::Markdown, &noise, "it is named as a Markdown file but contains binary data");
    }

    #[test]
    fn page_with_control_characters_is_named_binary_data() {
        let page = [&b"<!doctype html><html><p>caf\xe9"[..], &[1; 9], b"<p>more"].concat();
        for (format, name) in [
            (Format::Html, "an HTML page"),
            (Format::Text, "a text file"),
            (Format::Markdown, "a Markdown file"),
        ] {
            assert_binary(format, &page, &format!("it is named as {name} but contains binary data"));
        }
    }

    #[test]
    fn encrypted_docx_differs_from_old_office_document() {
        let old = [OLE, &[0; 600]].concat();
        assert_mismatch(Format::Docx, &old, "it is named as a DOCX file but contains an old Office document");
        let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let error = check(Format::Docx, &[&old[..], &name].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Encrypted);
        assert!(error.reason().contains("protected by a password"), "{error}");
    }

    #[test]
    fn ambiguous_content_passes() {
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
            (Format::Text, b"\x1b$)C\x0eGQ\x0f \x0e1[\x0f"),
            (Format::Text, b""),
        ] {
            assert!(check(format, bytes).is_ok(), "{format:?} {bytes:?}");
        }
    }
}
