//! Ranges of a file, and the name under which it is saved.

use std::ops::Range;

use actix_web::{
    HttpRequest,
    http::{
        Method, StatusCode,
        header::{self, ByteRangeSpec, HeaderName},
    },
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::ApiError;

/// What of a file is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// These bytes.
    Range(Range<u64>),
    /// Nothing: the caller has it.
    Known,
}

impl Part {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Whole => StatusCode::OK,
            Self::Range(_) => StatusCode::PARTIAL_CONTENT,
            Self::Known => StatusCode::NOT_MODIFIED,
        }
    }
}

/// What a request asks for of a file of `size` bytes. A header that makes no sense counts as absent, and so does one
/// with several ranges: RFC 9110 lets both be answered with the whole file.
pub(crate) fn asked(request: &HttpRequest, etag: &str, size: u64) -> Result<Part, ApiError> {
    let headers = request.headers();
    let tags = |name| {
        let lines = headers.get_all(name).map(|value| value.to_str().unwrap_or_default());
        lines.flat_map(|line| line.split(',')).map(str::trim)
    };
    // A weak tag never is the one that is asked for, and always one under which the file is known (RFC 9110, 13.1).
    if headers.contains_key(header::IF_MATCH) && !tags(header::IF_MATCH).any(|tag| tag == etag || tag == "*")
    {
        return Err(ApiError::conflict(format!("If-Match is no longer true: the file's ETag is {etag}")));
    }
    if tags(header::IF_NONE_MATCH).any(|tag| tag.strip_prefix("W/").unwrap_or(tag) == etag || tag == "*") {
        return Ok(Part::Known);
    }
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = header(header::RANGE).filter(|_| request.method() == Method::GET);
    let still = header(header::IF_RANGE).is_none_or(|wanted| wanted == etag);
    match asked.filter(|_| still).and_then(parse) {
        Some(range) => satisfy(&range, size),
        None => Ok(Part::Whole),
    }
}

/// The one range of bytes that a header names.
fn parse(header: &str) -> Option<ByteRangeSpec> {
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

/// A number of any length. One that is beyond all files is the largest there is.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

fn satisfy(range: &ByteRangeSpec, size: u64) -> Result<Part, ApiError> {
    match range.to_satisfiable_range(size) {
        Some((first, last)) => Ok(Part::Range(first..last.saturating_add(1))),
        None => Err(ApiError::outside(size)),
    }
}

/// What RFC 8187 leaves as it is in an extended value.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
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

/// The header that saves a file under its name, as RFC 6266 writes it: once for those that know ASCII alone.
pub(crate) fn disposition(file_name: &str) -> String {
    let name = lkr::stored_name(file_name);
    let fits = |c: char| c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%'));
    let ascii: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", utf8_percent_encode(&name, PLAIN))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Result<Part, u16> {
        let request =
            headers.iter().fold(TestRequest::default(), |request, pair| request.insert_header(*pair));
        asked(&request.to_http_request(), "\"a-1\"", 10).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn ranges_that_are_asked_for() {
        for (range, part) in [
            ("bytes=0-3", Ok(Part::Range(0..4))),
            ("bytes=4-", Ok(Part::Range(4..10))),
            ("bytes=-3", Ok(Part::Range(7..10))),
            ("bytes=-30", Ok(Part::Range(0..10))),
            ("bytes=8-99", Ok(Part::Range(8..10))),
            ("bytes=10-", Err(416)),
            ("bytes=-0", Err(416)),
            ("bytes=0-1,3-4", Ok(Part::Whole)),
            ("bytes=3-1", Ok(Part::Whole)),
            ("bytes=0-18446744073709551616", Ok(Part::Range(0..10))),
            ("bytes=2-99999999999999999999999999", Ok(Part::Range(2..10))),
            ("bytes=-99999999999999999999999999", Ok(Part::Range(0..10))),
            ("bytes=99999999999999999999999999-", Err(416)),
            ("Bytes=0-3", Ok(Part::Range(0..4))),
            ("BYTES = 0-3 ,", Ok(Part::Range(0..4))),
            ("bytes=+1-3", Ok(Part::Whole)),
            ("bytes=1-3x", Ok(Part::Whole)),
            ("bytes=-", Ok(Part::Whole)),
            ("bytes=", Ok(Part::Whole)),
            ("lines=1-2", Ok(Part::Whole)),
            ("nonsense", Ok(Part::Whole)),
        ] {
            assert_eq!(of(&[("range", range)]), part, "{range}");
        }
        assert_eq!(of(&[]), Ok(Part::Whole));
        assert_eq!(of(&[("range", "bytes=0-3"), ("if-range", "\"a-1\"")]), Ok(Part::Range(0..4)));
        assert_eq!(of(&[("range", "bytes=0-3"), ("if-range", "\"a-2\"")]), Ok(Part::Whole));
        for (tag, part) in [
            ("\"a-1\"", Part::Known),
            ("\"b\", W/\"a-1\"", Part::Known),
            ("*", Part::Known),
            ("\"b\"", Part::Whole),
        ] {
            assert_eq!(of(&[("if-none-match", tag)]), Ok(part), "{tag}");
        }
        for (tag, part) in [
            ("\"a-1\"", Ok(Part::Whole)),
            ("\"b\", \"a-1\"", Ok(Part::Whole)),
            ("*", Ok(Part::Whole)),
            ("\"a-2\"", Err(409)),
            ("W/\"a-1\"", Err(409)),
            ("", Err(409)),
        ] {
            assert_eq!(of(&[("if-match", tag)]), part, "{tag}");
        }
        assert_eq!(
            of(&[("if-match", "\"b\""), ("if-none-match", "*")]),
            Err(409),
            "the one that refuses is first"
        );
    }

    #[test]
    fn lesson_33_names_inject_no_headers() {
        for (name, header) in [
            ("report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"),
            (
                "a\"b;\r\nX: y.txt",
                "attachment; filename=\"a_b;__X: y.txt\"; filename*=UTF-8''a%22b%3B__X%3A%20y.txt",
            ),
            ("Übung 1.txt", "attachment; filename=\"_bung 1.txt\"; filename*=UTF-8''%C3%9Cbung%201.txt"),
            ("../../x.txt", "attachment; filename=\"x.txt\"; filename*=UTF-8''x.txt"),
        ] {
            assert_eq!(disposition(name), header);
        }
    }
}
