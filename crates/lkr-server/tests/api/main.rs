//! The service over HTTP, through the application that the server runs, on stores in memory.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by a panic")]

mod accounts;
mod chat_models;
mod conformance;
mod context;
mod cors;
mod dify;
mod documents;
mod envelope;
mod eval;
mod failures;
mod files;
mod filters;
mod generated;
mod keys;
mod knowledge;
mod mcp;
mod openai;
mod openapi;
mod openapi_examples;
mod operations;
mod reembed;
mod replacements;
mod rerank;
mod revoked_rights;
mod rights;
mod search;
mod settings;
mod snapshots;
mod space_documents;
mod spaces;
mod streams;
mod support;
mod tasks;
mod users;
mod webhooks;
