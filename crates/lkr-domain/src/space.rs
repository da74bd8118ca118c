use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// The maximum length of a space's name.
const MAX_NAME_BYTES: usize = 64;

/// The name of a space: 1 to 64 of `a-z 0-9 . _ -`, beginning with a letter or a digit. It never changes, and a deleted
/// space's name is never used again, so the name identifies the space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpaceName(String);

/// A text that is not the name of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSpaceName;

/// The spaces in which a caller's documents are looked for. To the caller, other documents do not exist. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every space.
    #[default]
    All,
    /// These spaces.
    Spaces(Arc<BTreeSet<SpaceName>>),
}

/// The limits of an API key. It sees and does no more, whatever its owner may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyScope {
    /// The spaces that it sees; `None` for those of its owner.
    pub spaces: Option<BTreeSet<SpaceName>>,
    /// Whether it may write.
    pub write: bool,
}

impl SpaceName {
    /// The name of the space that always exists.
    pub const DEFAULT: &str = "default";

    /// Validates a name; `None` if it is invalid.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        is_space_name(&name).then_some(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the space that always exists.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0 == Self::DEFAULT
    }
}

/// Whether `name` may name a space or a group.
#[must_use]
pub fn is_space_name(name: &str) -> bool {
    let is_allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    name.len() <= MAX_NAME_BYTES
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_allowed)
}

impl Default for SpaceName {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl fmt::Display for SpaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InvalidSpaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name must have 1 to 64 characters of a-z 0-9 . _ - and begin with a letter or a digit")
    }
}

impl std::error::Error for InvalidSpaceName {}

impl TryFrom<String> for SpaceName {
    type Error = InvalidSpaceName;

    fn try_from(name: String) -> Result<Self, InvalidSpaceName> {
        Self::new(name).ok_or(InvalidSpaceName)
    }
}

impl FromStr for SpaceName {
    type Err = InvalidSpaceName;

    fn from_str(name: &str) -> Result<Self, InvalidSpaceName> {
        Self::new(name).ok_or(InvalidSpaceName)
    }
}

impl From<SpaceName> for String {
    fn from(name: SpaceName) -> Self {
        name.0
    }
}

impl Scope {
    /// The scope of one space.
    #[must_use]
    pub fn of(space: SpaceName) -> Self {
        Self::from_iter([space])
    }

    /// The scope that contains no space.
    #[must_use]
    pub fn none() -> Self {
        Self::Spaces(Arc::default())
    }

    /// Whether the space is in the scope.
    #[must_use]
    pub fn contains(&self, space: &SpaceName) -> bool {
        match self {
            Self::All => true,
            Self::Spaces(spaces) => spaces.contains(space),
        }
    }

    /// Whether no space can be in the scope.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Spaces(spaces) if spaces.is_empty())
    }
}

impl Default for KeyScope {
    /// The scope of a key that may do what its owner may.
    fn default() -> Self {
        Self { spaces: None, write: true }
    }
}

impl KeyScope {
    /// Whether the key may do less than its owner.
    #[must_use]
    pub const fn is_restricted(&self) -> bool {
        self.spaces.is_some() || !self.write
    }

    /// Whether the key sees the space.
    #[must_use]
    pub fn includes(&self, space: &SpaceName) -> bool {
        self.spaces.as_ref().is_none_or(|spaces| spaces.contains(space))
    }
}

impl FromIterator<SpaceName> for Scope {
    fn from_iter<I: IntoIterator<Item = SpaceName>>(spaces: I) -> Self {
        Self::Spaces(Arc::new(spaces.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_name_outside_the_allowed_characters_or_length_is_refused() {
        for name in ["default", "a", "0", "legal-2026.v_1", &"z".repeat(64)] {
            assert_eq!(SpaceName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "A", "-a", ".a", "_a", "a b", "a/b", "é", "a\0", &"z".repeat(65)] {
            assert_eq!(SpaceName::new(name), None, "{name:?}");
        }
        assert!(SpaceName::default().is_default());
        assert_eq!(serde_json::from_str::<SpaceName>("\"b\"").unwrap(), SpaceName::new("b").unwrap());
        assert!(serde_json::from_str::<SpaceName>("\"B\"").is_err());
    }

    #[test]
    fn scope_contains_only_its_spaces() {
        let (a, b) = (SpaceName::new("a").unwrap(), SpaceName::new("b").unwrap());
        assert!(Scope::All.contains(&a) && !Scope::All.is_empty());
        assert!(Scope::of(a.clone()).contains(&a) && !Scope::of(a.clone()).contains(&b));
        assert!(Scope::none().is_empty() && !Scope::none().contains(&a));
    }
}
