//! The lines of an input, each within a limit.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use super::request_id::RequestIdScanner;

/// The most bytes of the end of a line that is too long that are in memory at once.
const PART_BYTES: u64 = 64 * 1024;

/// A line of the input.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// The line. It ends in a line feed, unless the input ended.
    Whole(Vec<u8>),
    /// The line was longer than the limit. It was read to its end and dropped, but for the id if it was a request.
    TooLong(Option<Value>),
}

/// Reads the next line of at most `limit` bytes; `None` at the end of the input.
pub(super) async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    limit: u64,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    // The line feed is not counted.
    read_part(input, limit.saturating_add(1), &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.ends_with(b"\n") || u64::try_from(line.len()).is_ok_and(|length| length <= limit) {
        return Ok(Some(Line::Whole(line)));
    }
    let mut scanner = RequestIdScanner::default();
    while !line.is_empty() {
        scanner.read(&line);
        if line.ends_with(b"\n") {
            break;
        }
        line.clear();
        read_part(input, PART_BYTES, &mut line).await?;
    }
    Ok(Some(Line::TooLong(scanner.into_id())))
}

/// Appends the input up to the end of the line, or `most` bytes of it.
async fn read_part(
    input: &mut (impl AsyncBufRead + Unpin),
    most: u64,
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    AsyncReadExt::take(input, most).read_until(b'\n', line).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::BufReader;

    use super::*;

    async fn lines(input: &[u8], limit: u64) -> Vec<Line> {
        // A small buffer, so that lines come in parts.
        let mut input = BufReader::with_capacity(3, input);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, limit).await.unwrap() {
            lines.push(line);
        }
        lines
    }

    fn whole(line: &str) -> Line {
        Line::Whole(line.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_in_a_line_feed_or_with_the_input() {
        assert_eq!(lines(b"", 8).await, []);
        assert_eq!(lines(b"a\r\n\nbcd", 8).await, [whole("a\r\n"), whole("\n"), whole("bcd")]);
    }

    #[tokio::test]
    async fn longer_line_is_dropped_and_the_next_one_is_read() {
        let found = lines(b"12345678\n123456789\n1\n123456789", 8).await;
        let expected = [whole("12345678\n"), Line::TooLong(None), whole("1\n"), Line::TooLong(None)];
        assert_eq!(found, expected);
        let request = br#"{"method":"tools/call","params":{"id":2},"id":"a"}"#;
        assert_eq!(lines(request, 8).await, [Line::TooLong(Some(json!("a")))]);
    }
}
