//! The OpenAPI document, built from the table that the routes are registered from.

mod document;
mod envelope;
mod errors;
mod examples;
mod links;
mod operation;
mod parameters;
mod response;

pub(crate) use document::document;
pub(crate) use operation::{NamedSchema, OperationDoc, ResponseShape, schema};
pub(crate) use parameters::CursorOf;
