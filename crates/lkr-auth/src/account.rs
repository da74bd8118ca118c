use std::fmt;

use time::OffsetDateTime;

use crate::{Actor, Error, Result};

/// The rights of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// May do everything.
    Admin,
    /// May read everything and change what the account owns.
    User,
}

impl Account {
    /// This account as the actor of a change in a request.
    #[must_use]
    pub fn by<'a>(&'a self, request_id: &'a str) -> Actor<'a> {
        Actor { actor: &self.username, account_id: Some(&self.id), request_id }
    }
}

impl Role {
    /// The name in responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }

    /// The role with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Admin, Self::User].into_iter().find(|role| role.name() == name)
    }
}

/// An account, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id, which distinguishes it from an earlier account of the same name.
    pub id: String,
    /// Its name as it was entered; names are compared case-insensitively.
    pub username: String,
    /// Its role.
    pub role: Role,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Whether it must change its password before anything else.
    pub must_change_password: bool,
    /// Whether it is disabled.
    pub disabled: bool,
}

/// An account to create.
#[derive(Clone, Copy)]
pub struct NewAccount<'a> {
    /// Its name.
    pub username: &'a str,
    /// Its password.
    pub password: &'a str,
    /// Its role.
    pub role: Role,
    /// Whether it must change its password before anything else.
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

/// A change of an account; a field that is `None` keeps its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// Its role.
    pub role: Option<Role>,
    /// Whether it is disabled.
    pub disabled: Option<bool>,
}

/// Checks that a username has 3 to 64 characters, all of `A-Z a-z 0-9 . _ - @`.
pub fn check_username(username: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    if (3..=64).contains(&username.len()) && username.chars().all(is_allowed) {
        return Ok(());
    }
    Err(Error::invalid("username", "must have 3 to 64 characters of A-Z a-z 0-9 . _ - @"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_from_name_is_the_inverse_of_name() {
        for role in [Role::Admin, Role::User] {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(Role::from_name("Admin"), None);
    }

    #[test]
    fn check_username_accepts_valid_and_refuses_invalid_names() {
        for good in ["abc", "A.b_c-d@e9", &"x".repeat(64)] {
            assert!(check_username(good).is_ok(), "{good}");
        }
        for bad in ["", "ab", &"x".repeat(65), "a b", "änn", "abc/d", "abc\n"] {
            assert!(check_username(bad).is_err(), "{bad:?}");
        }
    }
}
