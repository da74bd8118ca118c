//! A small blocking client of the HTTP service.

mod api_error;
mod client;
mod login;

pub(crate) use api_error::ApiError;
pub(crate) use client::Client;
pub(crate) use login::{DEFAULT_SERVER, Login};
