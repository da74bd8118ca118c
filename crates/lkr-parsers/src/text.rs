//! What the parsers of text have in common.

use crate::{
    MAX_TEXT_BYTES, Result, Source,
    charset::{charset_of, decode},
    compose::room_error,
};

/// The text of a source, with a warning where characters were lost.
///
/// What comes without a file's name is a text that somebody sent as it is, so it stays as it is, byte order mark
/// included, wherever it is UTF-8: places in it were counted by its sender.
pub(crate) fn read(source: &Source<'_>) -> Result<(String, Vec<String>)> {
    let as_it_is = match source.file_name {
        None => std::str::from_utf8(source.bytes).ok(),
        Some(_) => None,
    };
    let (text, warning) = match as_it_is {
        Some(text) => (text.to_owned(), None),
        None => decoded(source),
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(room_error());
    }
    Ok((text, warning.into_iter().collect()))
}

fn decoded(source: &Source<'_>) -> (String, Option<String>) {
    let decoded = decode(source.bytes, source.media_type.and_then(charset_of));
    let warning = || format!("some characters could not be read as {}", decoded.encoding);
    let warning = decoded.lossy.then(warning);
    (decoded.text.into_owned(), warning)
}
