use std::{fmt, str::FromStr};

use object_store::path::Path;

use crate::{Error, Result};

/// A bucket and the prefix of the keys in it, written `s3://bucket/prefix`. The prefix may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Location {
    bucket: String,
    prefix: Path,
}

impl S3Location {
    /// The name of the bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What every key begins with; empty, or without slashes at its ends.
    #[must_use]
    pub const fn prefix(&self) -> &Path {
        &self.prefix
    }
}

impl FromStr for S3Location {
    type Err = Error;

    /// # Errors
    /// `Invalid` if the text does not begin with `s3://`, the bucket's name is not one that Amazon S3 allows, or a part of the
    /// prefix is empty, `.` or `..`, or contains a character that an address would have to escape.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = |reason: &str| Error::invalid(format!("{text:?}: {reason}"));
        let rest = text.strip_prefix("s3://").ok_or_else(|| invalid("it does not begin with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket_name(bucket) {
            return Err(invalid("it has no valid bucket name"));
        }
        if !prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c)) {
            return Err(invalid("a prefix has letters, digits, '-', '_', '.' and '/'"));
        }
        let prefix =
            Path::parse(prefix).map_err(|_| invalid("a part of the prefix is empty, '.' or '..'"))?;
        Ok(Self { bucket: bucket.to_owned(), prefix })
    }
}

impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.as_ref().is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Whether Amazon S3 allows the name for a bucket.
fn is_bucket_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (3..=63).contains(&name.len())
        && name.bytes().all(allowed)
        && edge(name.bytes().next())
        && edge(name.bytes().next_back())
        && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_is_parsed_into_bucket_and_prefix_and_written_back() {
        for (text, bucket, prefix, written) in [
            ("s3://lkr", "lkr", "", "s3://lkr"),
            ("s3://lkr/", "lkr", "", "s3://lkr"),
            ("s3://lkr.example-1/a/b_c.d", "lkr.example-1", "a/b_c.d", "s3://lkr.example-1/a/b_c.d"),
            ("s3://lkr/a/", "lkr", "a", "s3://lkr/a"),
        ] {
            let location: S3Location = text.parse().unwrap();
            assert_eq!((location.bucket(), location.prefix().as_ref()), (bucket, prefix), "{text}");
            assert_eq!(location.to_string(), written);
        }
    }

    #[test]
    fn malformed_location_is_refused() {
        for text in [
            "",
            "lkr",
            "http://lkr",
            "s3:/lkr",
            "s3://",
            "s3:///a",
            "s3://ab",
            "s3://Upper",
            "s3://under_score",
            "s3://-lkr",
            "s3://lkr.",
            "s3://a..b",
            "s3://user@lkr/a",
            "s3://lkr/a//b",
            "s3://lkr/../b",
            "s3://lkr/./b",
            "s3://lkr/a?b",
            "s3://lkr/a%20b",
            "s3://lkr/ä",
        ] {
            assert!(text.parse::<S3Location>().is_err(), "{text}");
        }
    }
}
