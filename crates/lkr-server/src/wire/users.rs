use lkr_auth::{AccountChange, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::User;
use crate::http::Secret;

/// An account to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUser {
    /// 3 to 64 of `A-Z a-z 0-9 . _ - @`; case does not matter.
    #[schema(min_length = 3, max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")]
    pub(crate) username: String,
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) password: Secret,
    /// What it may do; user unless it is said.
    pub(crate) role: Option<RoleInput>,
    /// Whether it has to change the password before anything else; true unless it is said.
    #[schema(default = true)]
    pub(crate) must_change_password: Option<bool>,
}

/// What an account may do.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleInput {
    /// Everything.
    Admin,
    /// Reading, and changing what is its own.
    #[default]
    User,
}

impl From<RoleInput> for Role {
    fn from(role: RoleInput) -> Self {
        match role {
            RoleInput::Admin => Self::Admin,
            RoleInput::User => Self::User,
        }
    }
}

/// What to change of an account; what is left out or null stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserChange {
    role: Option<RoleInput>,
    /// Whether it is shut out.
    disabled: Option<bool>,
}

impl From<UserChange> for AccountChange {
    fn from(change: UserChange) -> Self {
        Self { role: change.role.map(Role::from), disabled: change.disabled }
    }
}

/// A password for an account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) new_password: Secret,
}

/// A page of accounts, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserList {
    pub(crate) items: Vec<User>,
    /// Where the next page begins; null after the last.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// That an account is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedUser {
    pub(crate) username: String,
    pub(crate) deleted: bool,
}
