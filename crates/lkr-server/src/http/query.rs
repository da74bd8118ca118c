//! Query parameters, parsed strictly: no duplicates, no unknown names, valid UTF-8.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use lkr::SpaceName;
use percent_encoding::percent_decode;

use super::rights::named_space;
use crate::error::{ApiError, ErrorSubject};

/// The default number of items on a page.
const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;

/// The most parameters of a request: more than any route has.
const MAX_PARAMETERS: usize = 64;

/// The query parameters that were not taken yet.
#[derive(Debug)]
pub(crate) struct QueryParams {
    pairs: Vec<(String, String)>,
}

impl QueryParams {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            if pairs.len() == MAX_PARAMETERS {
                return Err(ApiError::invalid(format!("more than {MAX_PARAMETERS} query parameters")));
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if pairs.iter().any(|(other, _)| *other == name) {
                let message = format!("query parameter {name:?} is given twice");
                return Err(ApiError::invalid(message).about(ErrorSubject::Parameter(name)));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// Takes a parameter.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// Takes a parameter and parses it; `expected` describes valid values.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || {
            let message = format!("query parameter {name} is wrong: {text:?}, expected {expected}");
            ApiError::invalid(message).about(ErrorSubject::Parameter(name.to_owned()))
        };
        parse(&text).map(Some).ok_or_else(wrong)
    }

    /// Takes a whole number; `expected` describes the range.
    pub(crate) fn number(
        &mut self,
        name: &str,
        expected: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        self.parsed(name, expected, |text| parse_digits(text).filter(|number| range.contains(number)))
    }

    /// Takes the space that the request is about, as a list of one name.
    pub(crate) fn space(&mut self) -> Result<Option<Vec<SpaceName>>, ApiError> {
        let Some(name) = self.text("space") else { return Ok(None) };
        named_space(name).map(|name| Some(vec![name]))
    }

    /// Takes the page size.
    pub(crate) fn limit(&mut self) -> Result<u32, ApiError> {
        self.limit_or(DEFAULT_LIMIT)
    }

    /// Takes the limit of a listing whose pages have `default` items.
    pub(crate) fn limit_or(&mut self, default: u32) -> Result<u32, ApiError> {
        let limit = self.number("limit", "a whole number from 1 to 100", 1..=MAX_LIMIT)?;
        Ok(limit.unwrap_or(default))
    }

    /// Takes the cursor of a listing. [`cursor`] made it with the same letter.
    pub(crate) fn offset<T: FromStr + Display>(&mut self, letter: char) -> Result<Option<T>, ApiError> {
        self.parsed("offset", "a cursor from next_offset", |text| parse_cursor(letter, text))
    }

    /// Refuses the parameters that were not taken.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let Some((name, _)) = self.pairs.into_iter().next() else { return Ok(()) };
        let message = format!("unknown query parameter {name:?}");
        Err(ApiError::invalid(message).about(ErrorSubject::Parameter(name)))
    }
}

/// Parses a number that consists of digits only.
fn parse_digits(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A cursor: a letter that identifies the listing, then the last item of the page.
pub(crate) fn cursor(letter: char, last: impl Display) -> String {
    format!("{letter}{last}")
}

/// Parses a cursor. Only the exact text that [`cursor`] makes is accepted.
fn parse_cursor<T: FromStr + Display>(letter: char, text: &str) -> Option<T> {
    let last = text.strip_prefix(letter)?.parse().ok()?;
    (cursor(letter, &last) == text).then_some(last)
}

fn decode(text: &str) -> Result<String, ApiError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    let decoded = decoded.map_err(|_| ApiError::invalid("the query is not UTF-8"))?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_taken_once() {
        let mut query = QueryParams::parse("q=a%20b+c&&source=%C3%A9&flag").unwrap();
        assert_eq!(query.text("q").as_deref(), Some("a b c"));
        assert_eq!(query.text("source").as_deref(), Some("é"));
        assert_eq!(query.text("flag").as_deref(), Some(""));
        assert_eq!(query.text("q"), None);
        assert!(query.finish().is_ok());
    }

    #[test]
    fn duplicate_unknown_malformed_and_out_of_range_parameters_are_refused() {
        assert!(QueryParams::parse("a=1&a=2").is_err());
        let many = |count: usize| (0..count).map(|n| format!("p{n}=1&")).collect::<String>();
        assert!(QueryParams::parse(&many(64)).is_ok() && QueryParams::parse(&many(65)).is_err());
        assert!(QueryParams::parse("a=%FF").is_err());
        assert!(QueryParams::parse("nope=1").unwrap().finish().is_err());
        for limit in ["0", "101", "abc", "", "-1", "1.0", "%2B1", "99999999999"] {
            assert!(QueryParams::parse(&format!("limit={limit}")).unwrap().limit().is_err(), "{limit}");
        }
        for limit in [1, 100] {
            assert_eq!(QueryParams::parse(&format!("limit={limit}")).unwrap().limit().unwrap(), limit);
        }
    }

    #[test]
    fn cursor_of_another_listing_or_spelling_is_refused() {
        let text = cursor('c', 17);
        let parse = |letter| QueryParams::parse(&format!("offset={text}")).unwrap().offset::<u32>(letter);
        assert_eq!(parse('c').unwrap(), Some(17));
        assert!(parse('d').is_err());
        for wrong in ["", "c", "c%2B17", "c017", "c17%20"] {
            let query = QueryParams::parse(&format!("offset={wrong}"));
            assert!(query.unwrap().offset::<u32>('c').is_err(), "{wrong}");
        }
    }
}
