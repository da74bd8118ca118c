//! Range requests for a file, and the file name in its response.

use std::ops::Range;

use actix_web::{
    HttpRequest,
    http::{
        Method, StatusCode,
        header::{self, ByteRangeSpec, HeaderMap, HeaderName},
    },
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::ApiError;

/// The part of a file that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedPart {
    /// The whole file.
    Whole,
    /// A range of bytes.
    Range(Range<u64>),
    /// Nothing: the client has this version of the file.
    NotModified,
}

impl RequestedPart {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Whole => StatusCode::OK,
            Self::Range(_) => StatusCode::PARTIAL_CONTENT,
            Self::NotModified => StatusCode::NOT_MODIFIED,
        }
    }
}

/// The part of a file of `size` bytes that a request asks for. A malformed range header and one with several ranges
/// count as absent: RFC 9110 allows the whole file as the response to both.
pub(crate) fn requested_part(
    request: &HttpRequest,
    etag: &str,
    size: u64,
) -> Result<RequestedPart, ApiError> {
    let headers = request.headers();
    // A weak tag never matches If-Match.
    let expects = |tag: &str| tag == etag || tag == "*";
    if headers.contains_key(header::IF_MATCH) && !tags(headers, header::IF_MATCH).any(expects) {
        return Err(ApiError::conflict(format!("If-Match does not hold: the file's ETag is {etag}")));
    }
    if is_not_modified(headers, etag) {
        return Ok(RequestedPart::NotModified);
    }
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let range = header(header::RANGE).filter(|_| request.method() == Method::GET);
    let is_same_version = header(header::IF_RANGE).is_none_or(|expected| expected == etag);
    match range.filter(|_| is_same_version).and_then(parse_range) {
        Some(range) => satisfy(&range, size),
        None => Ok(RequestedPart::Whole),
    }
}

/// Whether the client has this version. A weak tag matches `If-None-Match` like a strong one (RFC 9110, 13.1).
pub(crate) fn is_not_modified(headers: &HeaderMap, etag: &str) -> bool {
    let has = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag) == etag || tag == "*";
    tags(headers, header::IF_NONE_MATCH).any(has)
}

/// The entity tags of a header.
fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).map(|value| value.to_str().unwrap_or_default());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// The byte range of a header with exactly one.
fn parse_range(header: &str) -> Option<ByteRangeSpec> {
    let (unit, ranges) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut ranges = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
    let (first, last) = ranges.next().filter(|_| ranges.next().is_none())?.split_once('-')?;
    match (first, last) {
        ("", last) => number(last).map(ByteRangeSpec::Last),
        (first, "") => number(first).map(ByteRangeSpec::From),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteRangeSpec::FromTo(first, last))
        }
    }
}

/// A number of any length. A number that does not fit becomes `u64::MAX`.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

fn satisfy(range: &ByteRangeSpec, size: u64) -> Result<RequestedPart, ApiError> {
    match range.to_satisfiable_range(size) {
        Some((first, last)) => Ok(RequestedPart::Range(first..last.saturating_add(1))),
        None => Err(ApiError::range_not_satisfiable(size)),
    }
}

/// The characters that need no escape in an extended value (RFC 8187).
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The `Content-Disposition` of a file (RFC 6266): its name in ASCII for old clients, and in UTF-8.
pub(crate) fn content_disposition(file_name: &str) -> String {
    let name = lkr::stored_name(file_name);
    let is_plain = |c: char| c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%'));
    let ascii: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", utf8_percent_encode(&name, UNESCAPED))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn part_of(headers: &[(&'static str, &str)]) -> Result<RequestedPart, u16> {
        let request =
            headers.iter().fold(TestRequest::default(), |request, pair| request.insert_header(*pair));
        requested_part(&request.to_http_request(), "\"a-1\"", 10).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn range_and_conditional_headers_select_the_part() {
        for (range, part) in [
            ("bytes=0-3", Ok(RequestedPart::Range(0..4))),
            ("bytes=4-", Ok(RequestedPart::Range(4..10))),
            ("bytes=-3", Ok(RequestedPart::Range(7..10))),
            ("bytes=-30", Ok(RequestedPart::Range(0..10))),
            ("bytes=8-99", Ok(RequestedPart::Range(8..10))),
            ("bytes=10-", Err(416)),
            ("bytes=-0", Err(416)),
            ("bytes=0-1,3-4", Ok(RequestedPart::Whole)),
            ("bytes=3-1", Ok(RequestedPart::Whole)),
            ("bytes=0-18446744073709551616", Ok(RequestedPart::Range(0..10))),
            ("bytes=2-99999999999999999999999999", Ok(RequestedPart::Range(2..10))),
            ("bytes=-99999999999999999999999999", Ok(RequestedPart::Range(0..10))),
            ("bytes=99999999999999999999999999-", Err(416)),
            ("Bytes=0-3", Ok(RequestedPart::Range(0..4))),
            ("BYTES = 0-3 ,", Ok(RequestedPart::Range(0..4))),
            ("bytes=+1-3", Ok(RequestedPart::Whole)),
            ("bytes=1-3x", Ok(RequestedPart::Whole)),
            ("bytes=-", Ok(RequestedPart::Whole)),
            ("bytes=", Ok(RequestedPart::Whole)),
            ("lines=1-2", Ok(RequestedPart::Whole)),
            ("nonsense", Ok(RequestedPart::Whole)),
        ] {
            assert_eq!(part_of(&[("range", range)]), part, "{range}");
        }
        assert_eq!(part_of(&[]), Ok(RequestedPart::Whole));
        assert_eq!(
            part_of(&[("range", "bytes=0-3"), ("if-range", "\"a-1\"")]),
            Ok(RequestedPart::Range(0..4))
        );
        assert_eq!(part_of(&[("range", "bytes=0-3"), ("if-range", "\"a-2\"")]), Ok(RequestedPart::Whole));
        for (tag, part) in [
            ("\"a-1\"", RequestedPart::NotModified),
            ("\"b\", W/\"a-1\"", RequestedPart::NotModified),
            ("*", RequestedPart::NotModified),
            ("\"b\"", RequestedPart::Whole),
        ] {
            assert_eq!(part_of(&[("if-none-match", tag)]), Ok(part), "{tag}");
        }
        for (tag, part) in [
            ("\"a-1\"", Ok(RequestedPart::Whole)),
            ("\"b\", \"a-1\"", Ok(RequestedPart::Whole)),
            ("*", Ok(RequestedPart::Whole)),
            ("\"a-2\"", Err(409)),
            ("W/\"a-1\"", Err(409)),
            ("", Err(409)),
        ] {
            assert_eq!(part_of(&[("if-match", tag)]), part, "{tag}");
        }
        assert_eq!(
            part_of(&[("if-match", "\"b\""), ("if-none-match", "*")]),
            Err(409),
            "If-Match is checked first"
        );
    }

    #[test]
    fn lesson_33_file_name_cannot_inject_headers() {
        for (name, header) in [
            ("report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"),
            (
                "a\"b;\r\nX: y.txt",
                "attachment; filename=\"a_b;__X: y.txt\"; filename*=UTF-8''a%22b%3B__X%3A%20y.txt",
            ),
            ("Übung 1.txt", "attachment; filename=\"_bung 1.txt\"; filename*=UTF-8''%C3%9Cbung%201.txt"),
            ("../../x.txt", "attachment; filename=\"x.txt\"; filename*=UTF-8''x.txt"),
        ] {
            assert_eq!(content_disposition(name), header);
        }
    }
}
