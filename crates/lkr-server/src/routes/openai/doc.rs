//! What the OpenAPI document says about these routes.

use crate::openapi::{NamedSchema, OperationDoc, ResponseShape};

/// The documentation of a route of the OpenAI API.
pub(super) fn doc(id: &'static str, summary: &'static str, payload: Box<NamedSchema>) -> OperationDoc {
    OperationDoc::new("OpenAI", id, summary, ResponseShape::Bare(payload))
}

/// Documents the parameters of a listing.
pub(super) fn paged(doc: OperationDoc) -> OperationDoc {
    doc.query_limit()
        .query_text("after", "The id of an object: the page begins after it.")
        .query_text("before", "The id of an object: the page ends before it.")
        .query_choice("order", "desc: the newest first, the default; or asc.", ["desc", "asc"])
}
