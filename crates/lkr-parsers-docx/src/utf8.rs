//! Converts XML in any encoding to UTF-8.

use std::io::{self, BufRead, Cursor, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The XML declaration is searched in this many bytes.
const HEAD_BYTES: usize = 256;

/// How many bytes are converted in one step.
const CHUNK_BYTES: usize = 16 * 1024;

/// A reader that converts bytes to UTF-8. Invalid bytes become U+FFFD.
pub(crate) struct Utf8<R> {
    inner: io::Chain<Cursor<Vec<u8>>, R>,
    decoder: Decoder,
    raw: Vec<u8>,
    text: Vec<u8>,
    filled: usize,
    at: usize,
    ended: bool,
}

impl<R: Read> Utf8<R> {
    /// Uses the encoding of the byte order mark, or else of the XML declaration.
    pub(crate) fn new(mut inner: R) -> io::Result<Self> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        inner.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let decoder = encoding(&head).new_decoder_with_bom_removal();
        let text = vec![0; decoder.max_utf8_buffer_length(CHUNK_BYTES).unwrap_or(4 * CHUNK_BYTES)];
        let inner = Cursor::new(head).chain(inner);
        Ok(Self { inner, decoder, raw: vec![0; CHUNK_BYTES], text, filled: 0, at: 0, ended: false })
    }

    /// Converts the next bytes.
    fn convert(&mut self) -> io::Result<()> {
        let length = self.inner.read(&mut self.raw)?;
        self.ended = length == 0;
        let raw = self.raw.get(..length).unwrap_or_default();
        let (_, _, written, _) = self.decoder.decode_to_utf8(raw, &mut self.text, self.ended);
        (self.filled, self.at) = (written, 0);
        Ok(())
    }
}

impl<R: Read> BufRead for Utf8<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at >= self.filled && !self.ended {
            self.convert()?;
        }
        Ok(self.text.get(self.at..self.filled).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.filled.min(self.at + amount);
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

/// The encoding by the first bytes of an XML text.
fn encoding(head: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    match head {
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    // A declaration that is readable as ASCII cannot be UTF-16, so such a text is read as UTF-8.
    declared_encoding(head).filter(|encoding| *encoding != UTF_16LE && *encoding != UTF_16BE).unwrap_or(UTF_8)
}

fn declared_encoding(head: &[u8]) -> Option<&'static Encoding> {
    let head = head.trim_ascii_start();
    let end = head.windows(2).position(|window| window == b"?>")?;
    let declaration = std::str::from_utf8(head.get(..end)?).ok()?.strip_prefix("<?xml")?;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Encoding::for_label(value.split(quote).nth(1)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let mut text = String::new();
        Utf8::new(bytes).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, expected);
    }

    #[test]
    fn encoding_follows_mark_or_declaration() {
        check("<a>é</a>".as_bytes(), "<a>é</a>");
        check(b"\xef\xbb\xbf<a/>", "<a/>");
        check(b"<?xml encoding='ISO-8859-1'?>\xe9", "<?xml encoding='ISO-8859-1'?>é");
        check(b"<?xml encoding=\"UTF-16\"?>\xc3\xa9", "<?xml encoding=\"UTF-16\"?>é");
        check(b"<?xml encoding=", "<?xml encoding=");
        check(b"a\xff", "a\u{fffd}");
        check(b"", "");
        let wide: Vec<u8> = "<a>é</a>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&wide, "<a>é</a>");
        let wide: Vec<u8> = "\u{feff}<a>é</a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&wide, "<a>é</a>");
    }

    #[test]
    fn characters_across_chunks_are_not_split() {
        let long = format!("a{}", "é".repeat(2 * CHUNK_BYTES));
        check(long.as_bytes(), &long);
    }
}
