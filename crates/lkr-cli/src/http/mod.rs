//! The service over HTTP: a small blocking client.

mod client;
mod login;
mod refusal;

pub(crate) use client::Client;
pub(crate) use login::Login;
pub(crate) use refusal::Refusal;
