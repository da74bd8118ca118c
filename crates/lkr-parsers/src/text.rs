//! Decoding shared by the parsers of text.

use crate::{
    MAX_TEXT_BYTES, Result, Source,
    charset::{charset_of, decode},
    compose::text_too_long,
};

/// Decodes the text of a source, with a warning if characters were lost or the encoding is doubtful.
///
/// A source without a file name is a text that a client sent. If it is UTF-8, it stays unchanged, with its byte order
/// mark, because the client may refer to offsets in it.
pub(crate) fn read(source: &Source<'_>) -> Result<(String, Vec<String>)> {
    let sent_text = match source.file_name {
        None => std::str::from_utf8(source.bytes).ok(),
        Some(_) => None,
    };
    let (text, warnings) = match sent_text {
        Some(text) => (text.to_owned(), Vec::new()),
        None => decode_file(source),
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(text_too_long());
    }
    Ok((text, warnings))
}

fn decode_file(source: &Source<'_>) -> (String, Vec<String>) {
    let decoded = decode(source.bytes, source.media_type.and_then(charset_of));
    let warnings = decoded.warnings().collect();
    (decoded.text.into_owned(), warnings)
}
