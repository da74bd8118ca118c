//! The OpenAPI document, built from the table that the routes are registered from.

mod document;
mod operation;
mod response;

pub(crate) use document::document;
pub(crate) use operation::{NamedSchema, OperationDoc, ResponseShape, schema};
