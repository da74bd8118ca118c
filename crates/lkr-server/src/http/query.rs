//! Query parameters, read strictly: each at most once, none unknown, all UTF-8.

use std::{fmt::Display, str::FromStr};

use percent_encoding::percent_decode;

use crate::error::ApiError;

/// How many items a page has unless it is said.
const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;

/// The parameters of a query that were not taken yet.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(ApiError::invalid(format!("query parameter {name:?} comes twice")));
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

    /// Takes a parameter and reads it.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong =
            || ApiError::invalid(format!("query parameter {name} is wrong: {text:?}, expected {expected}"));
        read(&text).map(Some).ok_or_else(wrong)
    }

    /// Takes the size of a page.
    pub(crate) fn limit(&mut self) -> Result<u32, ApiError> {
        let read = |text: &str| whole(text).filter(|limit| (1..=MAX_LIMIT).contains(limit));
        let limit = self.read("limit", "a whole number from 1 to 100", read)?;
        Ok(limit.unwrap_or(DEFAULT_LIMIT))
    }

    /// Takes the cursor of a listing, which [`cursor`] made with the same letter.
    pub(crate) fn offset<T: FromStr + Display>(&mut self, letter: char) -> Result<Option<T>, ApiError> {
        self.read("offset", "a cursor from next_offset", |text| read_cursor(letter, text))
    }

    /// Refuses what was not taken.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.pairs.first() {
            Some((name, _)) => Err(ApiError::invalid(format!("unknown query parameter {name:?}"))),
            None => Ok(()),
        }
    }
}

/// A number written in digits alone.
fn whole(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A cursor: the last item shown, after a letter that tells which listing it belongs to.
pub(crate) fn cursor(letter: char, last: impl Display) -> String {
    format!("{letter}{last}")
}

/// The item of what [`cursor`] made, and of nothing that only reads like it.
fn read_cursor<T: FromStr + Display>(letter: char, text: &str) -> Option<T> {
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
    fn decodes_and_takes() {
        let mut query = Query::parse("q=a%20b+c&&source=%C3%A9&flag").unwrap();
        assert_eq!(query.text("q").as_deref(), Some("a b c"));
        assert_eq!(query.text("source").as_deref(), Some("é"));
        assert_eq!(query.text("flag").as_deref(), Some(""));
        assert_eq!(query.text("q"), None);
        assert!(query.finish().is_ok());
    }

    #[test]
    fn refuses() {
        assert!(Query::parse("a=1&a=2").is_err());
        assert!(Query::parse("a=%FF").is_err());
        assert!(Query::parse("nope=1").unwrap().finish().is_err());
        for limit in ["0", "101", "abc", "", "-1", "1.0", "%2B1", "99999999999"] {
            assert!(Query::parse(&format!("limit={limit}")).unwrap().limit().is_err(), "{limit}");
        }
        for limit in [1, 100] {
            assert_eq!(Query::parse(&format!("limit={limit}")).unwrap().limit().unwrap(), limit);
        }
    }

    #[test]
    fn cursors_belong_to_their_listing() {
        let text = cursor('c', 17);
        let read = |letter| Query::parse(&format!("offset={text}")).unwrap().offset::<u32>(letter);
        assert_eq!(read('c').unwrap(), Some(17));
        assert!(read('d').is_err());
        for other in ["", "c", "c%2B17", "c017", "c17%20"] {
            let query = Query::parse(&format!("offset={other}"));
            assert!(query.unwrap().offset::<u32>('c').is_err(), "{other}");
        }
    }
}
