use lkr_auth::{AccountChange, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::User;
use crate::http::SecretInput;

/// A new account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUser {
    /// 3 to 64 characters of `A-Z a-z 0-9 . _ - @`, case-insensitive.
    #[schema(min_length = 3, max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")]
    pub(crate) username: String,
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) password: SecretInput,
    /// What the account may do; user by default.
    pub(crate) role: Option<RoleInput>,
    /// Whether the account must change its password before anything else; true by default.
    #[schema(default = true)]
    pub(crate) must_change_password: Option<bool>,
}

/// What an account may do.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleInput {
    /// Everything.
    Admin,
    /// Reading, and changing its own documents.
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

/// A change of an account. Keys that are absent or null stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserChange {
    /// What the account may do.
    role: Option<RoleInput>,
    /// Whether the account cannot log in.
    disabled: Option<bool>,
}

impl From<UserChange> for AccountChange {
    fn from(change: UserChange) -> Self {
        Self { role: change.role.map(Role::from), disabled: change.disabled }
    }
}

/// A new password for an account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) new_password: SecretInput,
}

/// A page of accounts, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserList {
    /// The accounts of the page.
    pub(crate) items: Vec<User>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of deleting an account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedUser {
    /// The name of the account.
    pub(crate) username: String,
    /// true
    pub(crate) deleted: bool,
}
