//! The bodies of the OpenAI API of vector stores.

pub(crate) mod error;
