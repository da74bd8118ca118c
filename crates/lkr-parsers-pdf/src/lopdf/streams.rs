//! Unpacks the contents of streams, if they are complete.

use lkr_parsers::Result;
use lopdf::{Object, ObjectId, Stream};

use super::{LopdfDocument, MAX_STREAM};
use crate::error;

/// The zlib header of a compressed stream. Some files lack it.
const ZLIB: [u8; 2] = [0x78, 0x9c];

/// Most bytes of a compressed empty stream.
const EMPTY: usize = 16;

/// The unpacked content of a stream.
///
/// # Errors
/// `Limit` if it is too long, `Input` if it cannot be unpacked.
pub(super) fn unpacked(stream: &Stream) -> Result<Vec<u8>> {
    let unpack = |stream: &Stream| stream.get_plain_content_with_limit(MAX_STREAM).map_err(error::from_lopdf);
    let content = unpack(stream)?;
    // The library returns empty content if it cannot unpack anything.
    if content.is_empty() && stream.content.len() > EMPTY && stream.filters().is_ok_and(|all| !all.is_empty())
    {
        let content = [&ZLIB[..], &stream.content].concat();
        let content = unpack(&Stream::new(stream.dict.clone(), content))?;
        return if content.is_empty() { Err(error::unreadable()) } else { Ok(content) };
    }
    Ok(content)
}

impl LopdfDocument {
    /// The content of a page, from all its streams.
    ///
    /// # Errors
    /// `Limit` if it is too long, `Input` if a part of it cannot be read.
    pub(super) fn complete_content(&self, page: ObjectId) -> Result<Vec<u8>> {
        let dictionary = self.document.get_dictionary(page).map_err(error::from_lopdf)?;
        let streams = self.document.get_page_contents(page);
        let is_lost = |contents: &Object| match self.document.dereference(contents) {
            Ok((_, Object::Array(parts))) => parts.len() != streams.len(),
            Ok((_, contents)) => streams.is_empty() && *contents != Object::Null,
            Err(_) => true,
        };
        if dictionary.get(b"Contents").is_ok_and(is_lost) {
            return Err(error::unreadable());
        }
        let mut content = Vec::new();
        for id in streams {
            let stream = self.document.get_object(id).and_then(Object::as_stream);
            content.extend(unpacked(stream.map_err(error::from_lopdf)?)?);
            content.push(b'\n');
            if content.len() > MAX_STREAM {
                return Err(error::too_long());
            }
        }
        Ok(content)
    }
}
