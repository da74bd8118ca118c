//! The headers of a form's parts in UTF-8, whatever their sender wrote them in.

use std::{
    borrow::Cow,
    pin::Pin,
    task::{Context, Poll, ready},
};

use actix_web::{error::PayloadError, web::Bytes};
use encoding_rs::WINDOWS_1252;
use futures_util::Stream;

/// Longer headers are refused where they are read.
const MAX_BYTES: usize = 64 * 1024;

/// What ends the headers of a part.
const END: &[u8] = b"\r\n\r\n";

/// A form as it comes. Headers of parts that are not UTF-8, as old programs write the names of files, are taken for
/// Windows-1252 and passed on in UTF-8; all else is passed on as it is.
pub(super) struct PartHeaders<S> {
    inner: S,
    /// What parts a part from the next: a line break, two dashes and the boundary.
    delimiter: Vec<u8>,
    /// What has come and was not passed on yet.
    held: Vec<u8>,
    /// How many of the bytes in front nobody has sent: the line break before the first part.
    unsent: usize,
    in_headers: bool,
    is_over: bool,
}

impl<S> PartHeaders<S> {
    pub(super) fn new(inner: S, boundary: &str) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        Self { inner, delimiter, held: b"\r\n".to_vec(), unsent: 2, in_headers: false, is_over: false }
    }

    /// What of that which has come can be passed on.
    fn pass(&mut self) -> Vec<u8> {
        let mut passed = Vec::new();
        loop {
            // After the last part the form's end stands where headers would.
            self.in_headers &= !self.held.starts_with(b"--");
            let mark = if self.in_headers { END } else { &self.delimiter };
            let Some(at) = find(&self.held, mark) else { break };
            let part: Vec<u8> = self.held.drain(..at + mark.len()).collect();
            passed.extend_from_slice(&if self.in_headers { utf8(&part) } else { Cow::Borrowed(&*part) });
            self.in_headers = !self.in_headers;
        }
        let free = self.free();
        self.in_headers &= free == 0;
        passed.extend(self.held.drain(..free));
        let unsent = self.unsent.min(passed.len());
        passed.drain(..unsent);
        self.unsent -= unsent;
        passed
    }

    /// How many bytes need not wait for those that come: neither headers nor the beginning of a mark.
    fn free(&self) -> usize {
        match self.held.len() {
            length if self.is_over => length,
            length if self.in_headers && length > MAX_BYTES => length,
            _ if self.in_headers => 0,
            length => length.saturating_sub(self.delimiter.len()),
        }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for PartHeaders<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.is_over {
            match ready!(Pin::new(&mut self.inner).poll_next(cx)) {
                Some(Ok(chunk)) => self.held.extend_from_slice(&chunk),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.is_over = true,
            }
            let passed = self.pass();
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(passed.into())));
            }
        }
        Poll::Ready(None)
    }
}

fn utf8(headers: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(headers).is_ok() {
        return Cow::Borrowed(headers);
    }
    Cow::Owned(WINDOWS_1252.decode_without_bom_handling(headers).0.into_owned().into_bytes())
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let first = mark.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| byte == first)?;
        if text.get(at..)?.starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    /// What is passed on of a form that comes in pieces of so many bytes.
    async fn passed(form: &[u8], size: usize) -> Vec<u8> {
        let chunks: Vec<_> = form.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let pieces = PartHeaders::new(stream::iter(chunks), "B").map(Result::unwrap).collect::<Vec<_>>();
        pieces.await.concat()
    }

    #[actix_web::test]
    async fn headers_become_utf8_and_nothing_else_is_changed() {
        let form = b"before \xe9\r\n--B\r\nname=\xe9\x80\r\n\r\n\xe9--B\r\n\r\n\xe9\r\n--B\r\nname=\xc3\xa9\r\n\r\n\r\n--B--\r\n\xe9";
        let expected = [
            &b"before \xe9\r\n--B\r\nname="[..],
            "\u{e9}\u{20ac}".as_bytes(),
            b"\r\n\r\n\xe9--B\r\n\r\n\xe9\r\n--B\r\nname=\xc3\xa9\r\n\r\n\r\n--B--\r\n\xe9",
        ]
        .concat();
        for size in 1..=form.len() {
            assert_eq!(passed(form, size).await, expected, "{size}");
            assert_eq!(passed(&form[10..], size).await, &expected[10..], "{size}");
        }
        for end in 0..form.len() {
            // Nothing that was sent is held back for ever.
            assert!(passed(&form[..end], 3).await.len() >= end, "{end}");
        }
        let long = [b"--B\r\n".to_vec(), vec![0xe9; 2 * MAX_BYTES], END.to_vec()].concat();
        assert!(passed(&long, 1000).await == long);
    }
}
