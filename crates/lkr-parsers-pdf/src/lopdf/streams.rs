//! The contents of streams, as far as they are known to be whole.

use lkr_parsers::Result;
use lopdf::{Object, ObjectId, Stream};

use super::{MAX_STREAM, Open};
use crate::error;

/// What a packed stream begins with that says how it is packed. Some files lack it.
const ZLIB: [u8; 2] = [0x78, 0x9c];

/// Nothing takes no more bytes than this when it is packed.
const EMPTY: usize = 16;

/// What a stream holds.
///
/// # Errors
/// `Limit` where it is too long, `Input` where it cannot be unpacked.
pub(super) fn unpacked(stream: &Stream) -> Result<Vec<u8>> {
    let unpack = |stream: &Stream| stream.get_plain_content_with_limit(MAX_STREAM).map_err(error::from_lopdf);
    let content = unpack(stream)?;
    // The library answers nothing where it cannot unpack anything.
    if content.is_empty() && stream.content.len() > EMPTY && stream.filters().is_ok_and(|all| !all.is_empty())
    {
        let content = [&ZLIB[..], &stream.content].concat();
        let content = unpack(&Stream::new(stream.dict.clone(), content))?;
        return if content.is_empty() { Err(error::unreadable()) } else { Ok(content) };
    }
    Ok(content)
}

impl Open {
    /// The content of a page, from all its streams.
    ///
    /// # Errors
    /// `Limit` where it is too long, `Input` where a part of it cannot be read.
    pub(super) fn whole_content(&self, page: ObjectId) -> Result<Vec<u8>> {
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
