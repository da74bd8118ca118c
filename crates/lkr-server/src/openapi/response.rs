//! The documented responses of a route: success, other statuses, and errors.

use actix_web::http::{Method, StatusCode};
use serde_json::json;
use utoipa::openapi::{
    Content, Header, HeaderBuilder, RefOr, ResponseBuilder,
    response::Response,
    schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
};

use super::operation::{NamedSchema, OperationDoc, ResponseShape, schema};
use crate::{
    error::ErrorCode,
    http::{Access, Endpoint, ErrorFormat},
    wire::{dify::error::DifyError, openai::error::OpenAiError},
};

/// The name of the schema of errors in the envelope.
pub(super) const ERROR_ENVELOPE: &str = "ErrorEnvelope";

/// The name of the schema of errors in a form.
const fn error_schema(format: ErrorFormat) -> &'static str {
    match format {
        ErrorFormat::Envelope => ERROR_ENVELOPE,
        ErrorFormat::OpenAi => "OpenAiError",
        ErrorFormat::Dify => "DifyError",
        // The document lists no route of this protocol.
        ErrorFormat::JsonRpc => "JsonRpcError",
    }
}

/// The schemas of errors that are not in the envelope.
pub(super) fn other_errors() -> [Box<NamedSchema>; 2] {
    [schema::<OpenAiError>(), schema::<DifyError>()]
}

pub(super) fn success(doc: &OperationDoc) -> Response {
    let response = with_request_id(ResponseBuilder::new().description("ok"));
    let response = doc
        .headers
        .iter()
        .fold(response, |response, (name, description)| response.header(*name, header(description)));
    match &doc.shape {
        ResponseShape::Envelope(schema) => {
            let data = RefOr::Ref(Ref::from_schema_name(&schema.name));
            response.content("application/json", Content::new(Some(envelope(json!(0), data))))
        }
        ResponseShape::Bare(schema) => {
            response.content("application/json", Content::new(Some(Ref::from_schema_name(&schema.name))))
        }
        // In OpenAPI 3.1, a body of any type has no schema.
        ResponseShape::File => response.content("*/*", Content::new(None::<Schema>)),
        ResponseShape::Raw(content_type) => {
            let schema_type = if *content_type == "application/json" { Type::Object } else { Type::String };
            let body = ObjectBuilder::new().schema_type(schema_type).build();
            response.content(*content_type, Content::new(Some(Schema::Object(body))))
        }
    }
    .build()
}

/// Another response that is no error. It has the body of the usual one, except for 304.
pub(super) fn other_success(doc: &OperationDoc, status: StatusCode, description: &str) -> Response {
    let mut response = success(doc);
    response.description = description.to_owned();
    match status {
        StatusCode::NOT_MODIFIED => response.content.clear(),
        StatusCode::PARTIAL_CONTENT => {
            let range = header("The range of bytes, and the size of the file.");
            response.headers.insert("Content-Range".to_owned(), RefOr::T(range));
        }
        _ => {}
    }
    response
}

/// The errors of a route by HTTP status: those that follow from its access and body, and those that it declares.
pub(super) fn errors(endpoint: &Endpoint) -> Vec<(StatusCode, Vec<ErrorCode>)> {
    let doc = &endpoint.doc;
    let mut all: Vec<(StatusCode, ErrorCode)> =
        doc.errors.iter().map(|code| (code.status(), *code)).collect();
    all.extend(doc.other_errors.iter().copied());
    if endpoint.path.starts_with("/api/v1") {
        let codes = [ErrorCode::Invalid, ErrorCode::Overloaded, ErrorCode::Internal];
        all.extend(codes.map(|code| (code.status(), code)));
    }
    if endpoint.method != Method::GET {
        all.push((StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid));
    }
    if doc.body.is_some() {
        all.push((StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::Invalid));
    }
    if endpoint.access != Access::Public {
        all.push((ErrorCode::Unauthenticated.status(), ErrorCode::Unauthenticated));
    }
    if endpoint.access.needs_login(true) && !endpoint.access.serves_pending_password() {
        all.push((ErrorCode::PasswordChangeRequired.status(), ErrorCode::PasswordChangeRequired));
    }
    if endpoint.access.may_be_forbidden() {
        all.push((ErrorCode::Forbidden.status(), ErrorCode::Forbidden));
    }
    if matches!(endpoint.access, Access::SpaceReader | Access::SpaceManager) {
        all.push((ErrorCode::NotFound.status(), ErrorCode::NotFound));
    }
    all.sort_unstable();
    all.dedup();
    all.chunk_by(|a, b| a.0 == b.0)
        .filter_map(|same| Some((same.first()?.0, same.iter().map(|(_, code)| *code).collect())))
        .collect()
}

pub(super) fn error(endpoint: &Endpoint, status: StatusCode, codes: &[ErrorCode]) -> Response {
    let (doc, format) = (&endpoint.doc, ErrorFormat::of_path(endpoint.path));
    let codes: Vec<_> = codes.iter().map(|code| format.describe(*code)).collect();
    let content = match &doc.shape {
        ResponseShape::Envelope(schema)
            if doc.has_unready_payload && status == StatusCode::SERVICE_UNAVAILABLE =>
        {
            let data = RefOr::Ref(Ref::from_schema_name(&schema.name));
            Content::new(Some(envelope(json!(ErrorCode::Overloaded.number()), data)))
        }
        _ => Content::new(Some(Ref::from_schema_name(error_schema(format)))),
    };
    let response = ResponseBuilder::new().description(codes.join(", ")).content("application/json", content);
    let (name, description) = match status {
        StatusCode::UNAUTHORIZED => ("WWW-Authenticate", "Bearer."),
        StatusCode::RANGE_NOT_SATISFIABLE => ("Content-Range", "The size of the file."),
        StatusCode::METHOD_NOT_ALLOWED => ("Allow", "The methods of the path."),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            ("Retry-After", "Seconds to wait before the next attempt.")
        }
        _ => return with_request_id(response).build(),
    };
    with_request_id(response).header(name, header(description)).build()
}

/// The schema of errors in the envelope.
pub(super) fn error_envelope() -> Schema {
    let listed: Vec<_> = ErrorCode::all().map(|code| format!("{} {}", code.number(), code.name())).collect();
    let codes = ObjectBuilder::new().schema_type(Type::Integer).description(Some(listed.join(", "))).build();
    let null = ObjectBuilder::new().schema_type(SchemaType::new(Type::Null));
    envelope_of(codes.into(), RefOr::T(null.build().into()))
}

fn envelope(code: serde_json::Value, data: RefOr<Schema>) -> Schema {
    let code = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([code])).build();
    envelope_of(code.into(), data)
}

fn envelope_of(code: Schema, data: RefOr<Schema>) -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let object = ObjectBuilder::new()
        .property("code", code)
        .property("message", text())
        .property("data", data)
        .property("request_id", text());
    let required = ["code", "message", "data", "request_id"];
    Schema::Object(required.into_iter().fold(object, ObjectBuilder::required).build())
}

fn with_request_id(response: ResponseBuilder) -> ResponseBuilder {
    response.header(
        "X-Request-Id",
        header("The request's id in the log: the one that the client sent, or a generated one."),
    )
}

fn header(description: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new().schema(Some(text)).description(Some(description)).build()
}
