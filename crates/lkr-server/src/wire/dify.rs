//! The bodies of Dify's External Knowledge API.

pub(crate) mod condition;
pub(crate) mod error;
pub(crate) mod retrieval;
