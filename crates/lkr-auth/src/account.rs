use std::fmt;

use time::OffsetDateTime;

use crate::{Actor, Error, Result};

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    Admin,
    /// Reading, and changing what is its own.
    User,
}

impl Account {
    /// That this account asked, in this request.
    #[must_use]
    pub fn by<'a>(&'a self, request_id: &'a str) -> Actor<'a> {
        Actor { actor: &self.username, account_id: Some(&self.id), request_id }
    }
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

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Admin, Self::User].into_iter().find(|role| role.name() == name)
    }
}

/// An account, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Tells it from an earlier account of the same name.
    pub id: String,
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

/// An account to be made.
#[derive(Clone, Copy)]
pub struct NewAccount<'a> {
    /// Its name.
    pub username: &'a str,
    /// Its password.
    pub password: &'a str,
    /// What it may do.
    pub role: Role,
    /// Whether it has to change its password before anything else.
    pub must_change_password: bool,
}

impl fmt::Debug for NewAccount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewAccount")
            .field("username", &self.username)
            .field("role", &self.role)
            .field("must_change_password", &self.must_change_password)
            .finish_non_exhaustive()
    }
}

/// What to change of an account; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// What it may do.
    pub role: Option<Role>,
    /// Whether it is shut out.
    pub disabled: Option<bool>,
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
    use super::*;

    #[test]
    fn roles_have_names() {
        for role in [Role::Admin, Role::User] {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(Role::from_name("Admin"), None);
    }

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
