#![doc = include_str!("../README.md")]

mod account;
mod auth;
mod error;
mod password;
mod records;
mod session;

pub use account::{Account, Role, check_username};
pub use auth::{Auth, AuthOptions, FIRST_ADMIN};
pub use error::{Error, ErrorKind, Result};
pub use password::{check_password, generate_password};
pub use session::Login;
