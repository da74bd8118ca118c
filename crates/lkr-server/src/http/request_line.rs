//! The length of the first line of a request, as far as its head was read.

/// The longest URI that the framework parses. It answers 400 to a longer one, and 431 once a head does not fit its buffer.
const MAX_URI_BYTES: usize = 65_534;

/// The first line of the next request of a connection.
#[derive(Debug, Default)]
pub(super) struct RequestLine {
    length: usize,
    has_ended: bool,
}

impl RequestLine {
    /// Counts the next bytes of a head. Line breaks may precede it.
    pub(super) fn count(&mut self, bytes: &[u8]) {
        let skipped = match self.length {
            0 => bytes.iter().take_while(|byte| matches!(**byte, b'\r' | b'\n')).count(),
            _ => 0,
        };
        let bytes = bytes.get(skipped..).unwrap_or_default();
        if self.has_ended || bytes.is_empty() {
            return;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        self.length = self.length.saturating_add(end.unwrap_or(bytes.len()));
        self.has_ended = end.is_some();
    }

    /// Whether the line is too long for the framework.
    pub(super) const fn is_too_long(&self) -> bool {
        self.length > MAX_URI_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_counts_in_any_parts() {
        let long = "a".repeat(MAX_URI_BYTES);
        for (head, is_too_long) in [
            (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), true),
            (format!("\r\n\r\nGET /{long}"), true),
            (format!("GET / HTTP/1.1\r\nX: {long}{long}\r\n\r\n"), false),
            (format!("\r\nGET / HTTP/1.1\r\n\r\n{long}{long}"), false),
        ] {
            for size in [1, 100, head.len()] {
                let mut line = RequestLine::default();
                head.as_bytes().chunks(size).for_each(|part| line.count(part));
                assert_eq!(line.is_too_long(), is_too_long, "{size}: {head:.20}");
            }
        }
    }
}
