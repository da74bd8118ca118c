use std::{fmt, str::FromStr};

/// The most characters of an id.
const MAX_CHARS: usize = 64;

/// An id that a folder is given: 1 to 64 of `A-Z a-z 0-9 . _ -`. Other characters could not be told apart in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderId(String);

impl FolderId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FolderId {
    type Err = InvalidFolderId;

    fn from_str(text: &str) -> Result<Self, InvalidFolderId> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_valid = (1..=MAX_CHARS).contains(&text.len()) && text.chars().all(is_allowed);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidFolderId(text.to_owned())) }
    }
}

/// The text is no id of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidFolderId(String);

impl fmt::Display for InvalidFolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the id {:?} must have 1 to {MAX_CHARS} characters of A-Z a-z 0-9 . _ -", self.0)
    }
}

impl std::error::Error for InvalidFolderId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_has_up_to_64_characters_that_a_source_may_contain() {
        for valid in ["a", "Team_7.docs-v2", &"x".repeat(64)] {
            assert_eq!(valid.parse::<FolderId>().unwrap().as_str(), valid);
        }
        for invalid in ["", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(invalid.parse::<FolderId>().is_err(), "{invalid}");
        }
        assert!("a/b".parse::<FolderId>().unwrap_err().to_string().contains("\"a/b\""));
    }
}
