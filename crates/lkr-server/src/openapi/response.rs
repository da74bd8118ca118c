//! The documented responses of a route that are no errors.

use actix_web::http::StatusCode;
use serde_json::json;
use utoipa::openapi::{
    Content, Header, HeaderBuilder, RefOr, ResponseBuilder,
    response::Response,
    schema::{ObjectBuilder, Ref, Schema, Type},
};

use super::{
    envelope::envelope,
    examples,
    operation::{NamedSchema, OperationDoc, OtherStatus, ResponseShape},
};

/// The usual response.
pub(super) fn success(doc: &OperationDoc) -> Response {
    let response = with_request_id(ResponseBuilder::new().description(doc.success_description()));
    let response = doc
        .headers
        .iter()
        .fold(response, |response, (name, description)| response.header(*name, header(description)));
    let (content_type, content) = match &doc.shape {
        ResponseShape::Envelope(schema) => ("application/json", payload_content(doc, schema, "response")),
        ResponseShape::Bare(schema) => ("application/json", bare_content(doc, schema)),
        // In OpenAPI 3.1, a body of any type has no schema.
        ResponseShape::File => ("*/*", Content::new(None::<Schema>)),
        ResponseShape::Raw(content_type) => (*content_type, raw_content(doc, content_type)),
    };
    response.content(content_type, content).build()
}

/// A payload in the envelope, with the example of this key.
fn payload_content(doc: &OperationDoc, schema: &NamedSchema, key: &str) -> Content {
    let data = RefOr::Ref(Ref::from_schema_name(&schema.name));
    let mut content = Content::new(Some(envelope(json!(0), data)));
    content.example = examples::payload(doc.id, key).map(|payload| examples::envelope(0, "ok", payload));
    content
}

/// A payload without the envelope.
fn bare_content(doc: &OperationDoc, schema: &NamedSchema) -> Content {
    let mut content = Content::new(Some(Ref::from_schema_name(&schema.name)));
    content.example = examples::payload(doc.id, "response").cloned();
    content
}

/// A body without an envelope.
fn raw_content(doc: &OperationDoc, content_type: &str) -> Content {
    let schema_type = match content_type {
        "application/json" => Some(Type::Object),
        // In OpenAPI 3.1, neither bytes nor events have a schema.
        "text/event-stream" => None,
        text => text.starts_with("text/").then_some(Type::String),
    };
    let body = schema_type.map(|known| ObjectBuilder::new().schema_type(known).build());
    let mut content = Content::new(body.map(Schema::Object));
    content.example = examples::payload(doc.id, "response").cloned();
    content
}

/// Another response that is no error. It has the body of the usual one unless it has a payload of its own, or is a 304.
pub(super) fn other_success(doc: &OperationDoc, other: &OtherStatus) -> Response {
    let mut response = success(doc);
    response.description = other.description.to_owned();
    if let Some(schema) = &other.payload {
        let content = payload_content(doc, schema, other.status.as_str());
        response.content = [("application/json".to_owned(), RefOr::T(content))].into_iter().collect();
    }
    match other.status {
        StatusCode::NOT_MODIFIED => response.content.clear(),
        StatusCode::PARTIAL_CONTENT => {
            let range = header("The range of bytes, and the size of the file.");
            response.headers.insert("Content-Range".to_owned(), RefOr::T(range));
        }
        _ => {}
    }
    response
}

/// Adds the header that every response has.
pub(super) fn with_request_id(response: ResponseBuilder) -> ResponseBuilder {
    response.header(
        "X-Request-Id",
        header("The request's id in the log: the one that the client sent, or a generated one."),
    )
}

/// A header with text.
pub(super) fn header(description: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new().schema(Some(text)).description(Some(description)).build()
}
