//! How a command reaches a knowledge base: over HTTP, or in a data folder through a server in this process.

mod login;
mod saved;
mod target;

pub(crate) use login::{Login, server_address};
pub(crate) use saved::{SavedLogin, SavedLogins};
pub(crate) use target::TargetArgs;

/// The address of a server that no one names.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// The variable with the address of the server.
pub(crate) const URL_VARIABLE: &str = "LKR_URL";

/// The variable with an access token or API key. Other accounts of the machine can read the flags of a process, but not its
/// variables.
pub(crate) const TOKEN_VARIABLE: &str = "LKR_TOKEN";

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
