use time::OffsetDateTime;

use crate::{Error, Result};

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    Admin,
    /// Reading, and changing what is its own.
    User,
}

impl Role {
    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

/// An account, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name, written as when it was made; compared without case.
    pub username: String,
    /// What it may do.
    pub role: Role,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// Whether it has to change its password before anything else.
    pub must_change_password: bool,
    /// Whether it is shut out.
    pub disabled: bool,
}

/// Refuses what cannot be a username: it has 3 to 64 of `A-Z a-z 0-9 . _ - @`.
pub fn check_username(username: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    if (3..=64).contains(&username.len()) && username.chars().all(allowed) {
        return Ok(());
    }
    Err(Error::invalid("username", "needs 3 to 64 of A-Z a-z 0-9 . _ - @"))
}

#[cfg(test)]
mod tests {
    use super::check_username;

    #[test]
    fn usernames() {
        for good in ["abc", "A.b_c-d@e9", &"x".repeat(64)] {
            assert!(check_username(good).is_ok(), "{good}");
        }
        for bad in ["", "ab", &"x".repeat(65), "a b", "änn", "abc/d", "abc\n"] {
            assert!(check_username(bad).is_err(), "{bad:?}");
        }
    }
}
