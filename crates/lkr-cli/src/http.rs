//! The service over HTTP: a small blocking client.

mod api_error;
mod client;
mod login;

pub(crate) use api_error::ApiError;
pub(crate) use client::Client;
pub(crate) use login::Login;
