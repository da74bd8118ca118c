//! Ranges of a file, and the name under which it is saved.

use std::ops::Range;

use actix_web::{
    HttpRequest,
    http::{
        Method, StatusCode,
        header::{self, ByteRangeSpec, Header, HeaderName},
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
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let known = header(header::IF_NONE_MATCH).unwrap_or_default();
    if known
        .split(',')
        .any(|tag| matches!(tag.trim().trim_start_matches("W/"), tag if tag == etag || tag == "*"))
    {
        return Ok(Part::Known);
    }
    let whole = request.method() != Method::GET || header(header::RANGE).is_none();
    if whole || header(header::IF_RANGE).is_some_and(|wanted| wanted != etag) {
        return Ok(Part::Whole);
    }
    let Ok(header::Range::Bytes(ranges)) = header::Range::parse(request) else { return Ok(Part::Whole) };
    let [range] = ranges.as_slice() else { return Ok(Part::Whole) };
    satisfy(range, size)
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
