use lkr_auth::{Account, Login};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::moment;
use crate::http::Secret;

/// A username and a password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    /// The account's name; case does not matter.
    pub(crate) username: String,
    /// Its password.
    #[schema(value_type = String, format = Password)]
    pub(crate) password: Secret,
}

/// The name and password of an account to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Registration {
    /// 3 to 64 of `A-Z a-z 0-9 . _ - @`; case does not matter.
    #[schema(min_length = 3, max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")]
    pub(crate) username: String,
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) password: Secret,
}

/// A change of one's own password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordChange {
    /// The password as it is.
    #[schema(value_type = String, format = Password)]
    pub(crate) current_password: Secret,
    /// The password as it shall be: 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) new_password: Secret,
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct User {
    username: String,
    /// admin or user
    role: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    /// Whether the password must be changed before anything else.
    must_change_password: bool,
    disabled: bool,
}

impl From<&Account> for User {
    fn from(account: &Account) -> Self {
        Self {
            username: account.username.clone(),
            role: account.role.name(),
            created_at: moment(account.created_at),
            must_change_password: account.must_change_password,
            disabled: account.disabled,
        }
    }
}

/// A session's credential.
#[derive(Serialize, ToSchema)]
pub(crate) struct Token {
    /// To be sent as `Authorization: Bearer <access_token>`.
    access_token: String,
    /// Bearer
    token_type: &'static str,
    /// How long it is good for, in seconds.
    expires_in: u64,
    user: User,
}

impl From<Login> for Token {
    fn from(login: Login) -> Self {
        Self {
            token_type: "Bearer",
            expires_in: login.expires_in.as_secs(),
            user: User::from(&login.account),
            access_token: login.token,
        }
    }
}

/// Whether a session has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoggedOut {
    /// False for an API key, which is no session and stays good.
    pub(crate) logged_out: bool,
}
