//! A part of a document's extracted text that fits into an answer.

use std::{io, mem, pin::pin};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use lkr::{Document, KnowledgeBase, Scope};

use crate::{
    Error, ErrorKind, Result,
    output::{cut, cut_json},
    reference::Reference,
};

/// The most tokens of a part.
const PAGE_TOKENS: usize = 6_000;

/// The most code points of a part, which bounds what is read and counted for it.
const PAGE_CHARS: usize = 60_000;

/// A part of a text.
#[derive(Debug)]
pub(crate) struct TextPage {
    pub(crate) document: Document,
    pub(crate) text: String,
    pub(crate) start: u32,
    /// The code point after its last one.
    pub(crate) end: u32,
    /// Where the text continues; `None` if this is its end.
    pub(crate) next: Option<Reference>,
}

impl TextPage {
    /// The part without what does not fit into `max_tokens` tokens as JSON.
    pub(crate) fn within(mut self, max_tokens: usize) -> Self {
        let kept = cut_json(&self.text, max_tokens).len();
        if kept < self.text.len() {
            self.text.truncate(kept);
            self.end = self.start.saturating_add(length(&self.text));
            let next = Reference { doc_id: self.document.doc_id, start: self.end };
            self.next = (kept > 0).then_some(next);
        }
        self
    }
}

/// The length of a text in code points.
fn length(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Reads the part of a document of the scope that begins at the reference; `None` if there is no such document. A start behind
/// the end of the text gives an empty part.
pub(crate) async fn read(kb: &KnowledgeBase, scope: &Scope, from: Reference) -> Result<Option<TextPage>> {
    let Some((document, stream)) = kb.document_and_text(scope, from.doc_id).await? else { return Ok(None) };
    let (read, has_more) =
        code_points(stream, from.start as usize, PAGE_CHARS).await.map_err(|error| unreadable(&error))?;
    let text = cut(&read, PAGE_TOKENS);
    let is_last = text.len() == read.len() && !has_more;
    let end = from.start.saturating_add(length(text));
    let next = (!is_last && end > from.start).then_some(Reference { start: end, ..from });
    Ok(Some(TextPage { document, text: text.to_owned(), start: from.start, end, next }))
}

/// Up to `count` code points of a stream of UTF-8, without the first `skip`, and whether more follow.
async fn code_points(
    stream: impl Stream<Item = io::Result<Bytes>>,
    skip: usize,
    count: usize,
) -> io::Result<(String, bool)> {
    let mut stream = pin!(stream);
    let (mut pending, mut skipped, mut taken, mut text) = (Vec::new(), 0, 0, String::new());
    while let Some(bytes) = stream.next().await {
        pending.extend_from_slice(&bytes?);
        let complete = complete_utf8(&pending)?;
        let rest = pending.split_off(complete);
        let decoded = String::from_utf8(mem::replace(&mut pending, rest)).map_err(io::Error::other)?;
        for character in decoded.chars() {
            if skipped < skip {
                skipped += 1;
            } else if taken == count {
                return Ok((text, true));
            } else {
                text.push(character);
                taken += 1;
            }
        }
    }
    Ok((text, false))
}

/// The length of the valid start of `bytes`, which may end inside a character.
fn complete_utf8(bytes: &[u8]) -> io::Result<usize> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.len()),
        Err(error) if error.error_len().is_none() => Ok(error.valid_up_to()),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

fn unreadable(error: &io::Error) -> Error {
    tracing::error!(%error, "the text of a document cannot be read");
    Error::new(
        ErrorKind::Unavailable,
        "read text",
        "the text cannot be read; see the log of the knowledge base",
    )
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn code_points_are_counted_across_the_items_of_a_stream() {
        let text = "aé€😀z";
        for size in 1..=text.len() {
            let items = text.as_bytes().chunks(size).map(|part| Ok(Bytes::copy_from_slice(part)));
            let read = code_points(stream::iter(items.collect::<Vec<_>>()), 1, 3).await.unwrap();
            assert_eq!(read, ("é€😀".to_owned(), true), "items of {size} bytes");
        }
    }

    #[tokio::test]
    async fn damaged_text_is_an_error() {
        let items = vec![Ok(Bytes::from_static(b"a\xff")), Ok(Bytes::from_static(b"b"))];
        assert!(code_points(stream::iter(items), 0, 9).await.is_err());
    }
}
