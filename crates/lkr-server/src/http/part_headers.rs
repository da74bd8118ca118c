//! Transcodes the headers of a form's parts to what the form parser reads: UTF-8 without control characters.

use std::{
    borrow::Cow,
    pin::Pin,
    task::{Context, Poll, ready},
};

use actix_web::{error::PayloadError, web::Bytes};
use encoding_rs::WINDOWS_1252;
use futures_util::Stream;

/// Longer headers are passed on unchanged; the form parser refuses them.
const MAX_BYTES: usize = 64 * 1024;

/// The end of the headers of a part.
const HEADERS_END: &[u8] = b"\r\n\r\n";

/// A form as it arrives, with the headers of its parts in UTF-8. Headers that are not UTF-8 are decoded as Windows-1252,
/// in which old programs write file names. Control characters, which the form parser refuses, are replaced by
/// [stand-ins](restored). Everything else is passed on unchanged.
pub(super) struct PartHeaderDecoder<S> {
    inner: S,
    /// The delimiter between two parts: a line break, two dashes and the boundary.
    delimiter: Vec<u8>,
    /// Bytes that arrived and were not passed on yet.
    buffer: Vec<u8>,
    /// How many bytes at the front were never sent by the client: the line break before the first part.
    synthetic: usize,
    in_headers: bool,
    ended: bool,
}

impl<S> PartHeaderDecoder<S> {
    pub(super) fn new(inner: S, boundary: &str) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        Self { inner, delimiter, buffer: b"\r\n".to_vec(), synthetic: 2, in_headers: false, ended: false }
    }

    /// The bytes that can be passed on now.
    fn forward(&mut self) -> Vec<u8> {
        let mut passed = Vec::new();
        loop {
            // The end of the form follows its last delimiter in the place of headers.
            self.in_headers &= !self.buffer.starts_with(b"--");
            let mark = if self.in_headers { HEADERS_END } else { &self.delimiter };
            let Some(at) = find(&self.buffer, mark) else { break };
            let part: Vec<u8> = self.buffer.drain(..at + mark.len()).collect();
            passed.extend_from_slice(&if self.in_headers { readable(&part) } else { Cow::Borrowed(&*part) });
            self.in_headers = !self.in_headers;
        }
        let free = self.forwardable();
        self.in_headers &= free == 0;
        passed.extend(self.buffer.drain(..free));
        let synthetic = self.synthetic.min(passed.len());
        passed.drain(..synthetic);
        self.synthetic -= synthetic;
        passed
    }

    /// How many bytes can be passed on without the bytes after them: neither headers nor the start of a delimiter.
    fn forwardable(&self) -> usize {
        match self.buffer.len() {
            length if self.ended => length,
            length if self.in_headers && length > MAX_BYTES => length,
            _ if self.in_headers => 0,
            length => length.saturating_sub(self.delimiter.len()),
        }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for PartHeaderDecoder<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended {
            match ready!(Pin::new(&mut self.inner).poll_next(cx)) {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(&chunk),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.ended = true,
            }
            let passed = self.forward();
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(passed.into())));
            }
        }
        Poll::Ready(None)
    }
}

/// The first of the 32 code points that Unicode reserves for the use within a program: stand-ins of the control characters
/// from 0 on.
const STAND_INS: u32 = 0xFDD0;
/// Another such code point, for the control character 0x7F.
const DELETE_STAND_IN: char = '\u{FFFE}';

fn readable(headers: &[u8]) -> Cow<'_, [u8]> {
    let text = match std::str::from_utf8(headers) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(headers).0,
    };
    let is_refused = |c: char| c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n');
    if text.contains(is_refused) {
        let stand_in = |c| if is_refused(c) { stand_in(c) } else { c };
        return Cow::Owned(text.chars().map(stand_in).collect::<String>().into_bytes());
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn stand_in(control: char) -> char {
    char::from_u32(STAND_INS + u32::from(control)).filter(|_| control < ' ').unwrap_or(DELETE_STAND_IN)
}

/// A value of a header as the client sent it.
pub(super) fn restored(value: &str) -> String {
    let control = |c: char| match u32::from(c).checked_sub(STAND_INS) {
        Some(control @ 0..0x20) => char::from_u32(control).unwrap_or(c),
        _ if c == DELETE_STAND_IN => '\u{7f}',
        _ => c,
    };
    value.chars().map(control).collect()
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

    /// The bytes that are passed on for a form that arrives in chunks of `size` bytes.
    async fn transcoded(form: &[u8], size: usize) -> Vec<u8> {
        let chunks: Vec<_> = form.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let forwarded =
            PartHeaderDecoder::new(stream::iter(chunks), "B").map(Result::unwrap).collect::<Vec<_>>();
        forwarded.await.concat()
    }

    #[actix_web::test]
    async fn control_characters_have_stand_ins_that_are_restored() {
        let name: String = (0..=0x7f).filter_map(char::from_u32).filter(|c| !"\r\n".contains(*c)).collect();
        let form = format!("--B\r\nname={name}\r\n\r\n{name}--B--");
        let passed = String::from_utf8(transcoded(form.as_bytes(), 7).await).unwrap();
        let (header, body) = passed.split_once("\r\n\r\n").unwrap();
        assert!(!header.contains(|c: char| c.is_control() && !"\t\r\n".contains(c)), "{header:?}");
        assert_eq!(restored(header), format!("--B\r\nname={name}"));
        assert_eq!(body, format!("{name}--B--"));
    }

    #[actix_web::test]
    async fn part_headers_become_utf8_and_all_other_bytes_stay() {
        let form = b"before \xe9\r\n--B\r\nname=\xe9\x80\r\n\r\n\xe9--B\r\n\r\n\xe9\r\n--B\r\nname=\xc3\xa9\r\n\r\n\r\n--B--\r\n\xe9";
        let expected = [
            &b"before \xe9\r\n--B\r\nname="[..],
            "\u{e9}\u{20ac}".as_bytes(),
            b"\r\n\r\n\xe9--B\r\n\r\n\xe9\r\n--B\r\nname=\xc3\xa9\r\n\r\n\r\n--B--\r\n\xe9",
        ]
        .concat();
        for size in 1..=form.len() {
            assert_eq!(transcoded(form, size).await, expected, "{size}");
            assert_eq!(transcoded(&form[10..], size).await, &expected[10..], "{size}");
        }
        for end in 0..form.len() {
            // At the end of the stream all bytes have been passed on.
            assert!(transcoded(&form[..end], 3).await.len() >= end, "{end}");
        }
        let long = [b"--B\r\n".to_vec(), vec![0xe9; 2 * MAX_BYTES], HEADERS_END.to_vec()].concat();
        assert!(transcoded(&long, 1000).await == long);
    }
}
