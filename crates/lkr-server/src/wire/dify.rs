//! The bodies of Dify's External Knowledge API.

pub(crate) mod condition;
mod condition_schema;
pub(crate) mod error;
pub(crate) mod retrieval;
