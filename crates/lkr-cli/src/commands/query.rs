//! Query strings and paths.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is escaped in a segment of a path: everything but letters, digits and the marks that names contain.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'@').remove(b':');

/// A segment of a path, such as a username.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// The query string of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryString(Vec<(&'static str, String)>);

impl QueryString {
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    #[must_use]
    pub(crate) fn with_some(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl fmt::Display for QueryString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let mark = if at == 0 { '?' } else { '&' };
            write!(f, "{mark}{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_segments_are_escaped() {
        let query = QueryString::default().with("q", "a&b=ü").with_some("offset", None::<String>);
        assert_eq!(query.with_some("limit", Some("7")).to_string(), "?q=a%26b%3D%C3%BC&limit=7");
        assert_eq!(QueryString::default().to_string(), "");
        assert_eq!((segment("eva@b.c"), segment("a/../b?")), ("eva@b.c".into(), "a%2F..%2Fb%3F".into()));
    }
}
