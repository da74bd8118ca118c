#![doc = include_str!("../README.md")]

mod account;
mod accounts;
mod actor;
mod admin_change;
mod api_key;
mod audit;
mod auth;
mod change_password;
mod credential;
mod error;
mod hasher;
mod key_secret;
mod keys;
mod login;
mod operator;
mod page;
mod password;
mod records;
mod session;
mod throttle;

pub use account::{Account, AccountChange, NewAccount, Role, check_username};
pub use actor::Actor;
pub use api_key::{ApiKey, KeyRequest, NewKey};
pub use audit::{AuditAction, AuditEntry, AuditFilter, AuditLog};
pub use auth::{Auth, AuthOptions, FIRST_ADMIN};
pub use credential::{Credential, Identity};
pub use error::{Error, ErrorKind, Result};
pub use lkr_domain::{AuditId, KeyId, KeyScope};
pub use login::LoginAttempt;
pub use operator::OperatorToken;
pub use page::Page;
pub use password::{check_password, generate_password};
pub use records::is_readable;
pub use session::Login;
pub use throttle::ThrottleOptions;
