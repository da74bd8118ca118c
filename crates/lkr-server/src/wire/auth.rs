use lkr_auth::{Account, Login};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::timestamp::timestamp;
use crate::http::SecretInput;

/// A username and a password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    /// The account's name, case-insensitive.
    pub(crate) username: String,
    /// The account's password.
    #[schema(value_type = String, format = Password)]
    pub(crate) password: SecretInput,
    /// Whether to set the session as a cookie too, for pages: HttpOnly, SameSite=Strict. By default it is not set.
    pub(crate) cookie: Option<bool>,
}

/// The username and password of a new account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Registration {
    /// 3 to 64 characters of `A-Z a-z 0-9 . _ - @`, case-insensitive.
    #[schema(min_length = 3, max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")]
    pub(crate) username: String,
    /// 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) password: SecretInput,
    /// Whether to set the session as a cookie too, for pages: HttpOnly, SameSite=Strict. By default it is not set.
    pub(crate) cookie: Option<bool>,
}

/// A change of the caller's password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordChange {
    /// The current password.
    #[schema(value_type = String, format = Password)]
    pub(crate) current_password: SecretInput,
    /// The new password: 8 to 128 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128)]
    pub(crate) new_password: SecretInput,
    /// Whether to set the new session as a cookie too. By default it is set if the caller's session came in a cookie.
    pub(crate) cookie: Option<bool>,
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct User {
    /// Its name.
    username: String,
    /// admin or user
    #[schema(pattern = "^(admin|user)$")]
    role: &'static str,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// Whether the password must be changed before anything else.
    must_change_password: bool,
    /// Whether the account cannot log in.
    disabled: bool,
}

impl From<&Account> for User {
    fn from(account: &Account) -> Self {
        Self {
            username: account.username.clone(),
            role: account.role.name(),
            created_at: timestamp(account.created_at),
            must_change_password: account.must_change_password,
            disabled: account.disabled,
        }
    }
}

/// The credential of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Token {
    /// Send it as `Authorization: Bearer <access_token>`.
    access_token: String,
    /// Bearer
    #[schema(pattern = "^Bearer$")]
    token_type: &'static str,
    /// How long it is valid, in seconds.
    expires_in: u64,
    /// The account.
    user: User,
    /// What the header `X-Lkr-CSRF` must have with the session's cookie; present if the cookie was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    csrf_token: Option<String>,
}

impl Token {
    pub(crate) fn new(login: Login, csrf_token: Option<String>) -> Self {
        Self {
            token_type: "Bearer",
            expires_in: login.expires_in.as_secs(),
            user: User::from(&login.account),
            access_token: login.token,
            csrf_token,
        }
    }
}

/// The account of the credential.
#[derive(Serialize, ToSchema)]
pub(crate) struct CurrentUser {
    #[serde(flatten)]
    pub(crate) user: User,
    /// What the header `X-Lkr-CSRF` must have with the session's cookie; present if the session came in a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) csrf_token: Option<String>,
}

/// The result of a logout.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoggedOut {
    /// Whether a session was ended. False for an API key, which stays valid.
    pub(crate) logged_out: bool,
}
