//! The bodies of Dify's External Knowledge API.

pub(crate) mod error;
