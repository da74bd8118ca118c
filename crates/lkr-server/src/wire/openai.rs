//! The bodies of the OpenAI API of vector stores. A vector store is a space, and a file is a document.

pub(crate) mod error;
pub(crate) mod filter;
pub(crate) mod filter_schema;
pub(crate) mod page;
pub(crate) mod search;
pub(crate) mod vector_stores;
