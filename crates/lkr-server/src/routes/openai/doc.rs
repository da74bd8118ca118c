//! What the OpenAPI document says about these routes.

use crate::openapi::{CursorOf, NamedSchema, OperationDoc, ResponseShape};

/// The documentation of a route of the OpenAI API.
pub(super) fn doc(id: &'static str, summary: &'static str, payload: Box<NamedSchema>) -> OperationDoc {
    OperationDoc::new("OpenAI", id, summary, ResponseShape::Bare(payload))
}

/// Documents the parameters of a listing whose objects have ids of this kind.
pub(super) fn paged(doc: OperationDoc, ids: CursorOf) -> OperationDoc {
    let before = "The id of an object: the page ends before it. Not beside `after`.";
    doc.query_limit()
        .query_object("after", "The id of an object: the page begins after it.", ids)
        .query_object("before", before, ids)
        .query_choice("order", "desc: the newest first, the default; or asc.", ["desc", "asc"])
}
