//! The JSON types of requests and responses, converted by hand from and to the libraries' types.

pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod batch;
pub(crate) mod bulk_delete;
pub(crate) mod context;
pub(crate) mod document_change;
pub(crate) mod document_input;
pub(crate) mod documents;
pub(crate) mod eval;
pub(crate) mod files;
pub(crate) mod filter_expr;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod knowledge;
pub(crate) mod ops;
pub(crate) mod range;
pub(crate) mod search;
pub(crate) mod search_input;
pub(crate) mod settings;
pub(crate) mod settings_input;
pub(crate) mod spaces;
pub(crate) mod submission_options;
pub(crate) mod tasks;
pub(crate) mod timestamp;
pub(crate) mod users;
pub(crate) mod webhooks;
