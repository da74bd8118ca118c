//! The documented error responses of a route.

use actix_web::http::{Method, StatusCode};
use serde_json::{Value, json};
use utoipa::openapi::{
    Content, RefOr, ResponseBuilder,
    example::{Example, ExampleBuilder},
    response::Response,
    schema::Ref,
};

use super::{
    envelope::envelope,
    examples,
    operation::{NamedSchema, OperationDoc, ResponseShape, schema},
    response::{header, with_request_id},
};
use crate::{
    error::{ApiError, ErrorCode},
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
    // Anything but a read is refused to a session in a cookie without its CSRF token.
    let needs_csrf_token = endpoint.method != Method::GET && endpoint.access != Access::Public;
    if endpoint.access.may_be_forbidden() || needs_csrf_token {
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

/// The response of an error status.
pub(super) fn error(endpoint: &Endpoint, status: StatusCode, codes: &[ErrorCode]) -> Response {
    let format = ErrorFormat::of_path(endpoint.path);
    let listed: Vec<_> = codes.iter().map(|code| format.describe(*code)).collect();
    let response = ResponseBuilder::new().description(listed.join(", "));
    let response = with_request_id(response.content("application/json", content(endpoint, status, codes)));
    match status_header(status) {
        Some((name, description)) => response.header(name, header(description)).build(),
        None => response.build(),
    }
}

/// The header that every response of a status has.
const fn status_header(status: StatusCode) -> Option<(&'static str, &'static str)> {
    match status {
        StatusCode::UNAUTHORIZED => Some(("WWW-Authenticate", "Bearer.")),
        StatusCode::RANGE_NOT_SATISFIABLE => Some(("Content-Range", "The size of the file.")),
        StatusCode::METHOD_NOT_ALLOWED => Some(("Allow", "The methods of the path.")),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            Some(("Retry-After", "Seconds to wait before the next attempt."))
        }
        _ => None,
    }
}

fn content(endpoint: &Endpoint, status: StatusCode, codes: &[ErrorCode]) -> Content {
    let doc = &endpoint.doc;
    if let Some(content) = unready_content(doc, status) {
        return content;
    }
    let format = ErrorFormat::of_path(endpoint.path);
    let mut content = Content::new(Some(Ref::from_schema_name(error_schema(format))));
    let examples = codes.iter().map(|code| {
        let error = ApiError::new(*code, message(endpoint, status, *code)).with_status(status);
        let other = format.other_body(&error).and_then(|body| serde_json::from_slice(&body).ok());
        let body = other.unwrap_or_else(|| examples::envelope(code.number(), &error.message, &Value::Null));
        (code.name().to_owned(), RefOr::T(example(body)))
    });
    content.examples = examples.collect();
    content
}

/// The content of a 503 that has the usual payload.
fn unready_content(doc: &OperationDoc, status: StatusCode) -> Option<Content> {
    let ResponseShape::Envelope(schema) = &doc.shape else { return None };
    if !doc.has_unready_payload || status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let code = ErrorCode::Overloaded.number();
    let data = RefOr::Ref(Ref::from_schema_name(&schema.name));
    let mut content = Content::new(Some(envelope(json!(code), data)));
    content.example = examples::payload(doc.id, status.as_str())
        .map(|payload| examples::envelope(code, "a store is down", payload));
    Some(content)
}

fn example(envelope: Value) -> Example {
    ExampleBuilder::new().value(Some(envelope)).build()
}

/// The message of an error in examples: the operation's own, else one that every route has.
fn message(endpoint: &Endpoint, status: StatusCode, code: ErrorCode) -> String {
    let own = examples::message(endpoint.doc.id, code.name()).filter(|_| status == code.status());
    own.map_or_else(|| common_message(endpoint, status, code), str::to_owned)
}

fn common_message(endpoint: &Endpoint, status: StatusCode, code: ErrorCode) -> String {
    let body_type = endpoint.doc.body_type;
    match (status, code) {
        (StatusCode::PAYLOAD_TOO_LARGE, _) => "the body is larger than 65536 bytes".to_owned(),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, _) => {
            format!("the content type must be {body_type}, not \"text/plain\"")
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, _) => {
            "the range is outside of the file, which has 1024 bytes".to_owned()
        }
        (_, ErrorCode::Invalid) => "unknown query parameter \"colour\"".to_owned(),
        (_, ErrorCode::Conflict) => "the current state does not allow this".to_owned(),
        (_, ErrorCode::NotFound) => format!("no such {}", named_object(endpoint.path)),
        (_, ErrorCode::Unauthenticated) => "this needs a login: no credential was sent".to_owned(),
        (_, ErrorCode::Forbidden) => forbidden_message(endpoint.access).to_owned(),
        (_, ErrorCode::RegisterDisabled) => "registration is disabled".to_owned(),
        (_, ErrorCode::PasswordChangeRequired) => {
            "the password must be changed first: POST /api/v1/auth/password".to_owned()
        }
        (_, ErrorCode::RateLimited) => "authentication: too many attempts; try again later".to_owned(),
        (_, ErrorCode::Overloaded) => "too many large requests at once".to_owned(),
        (_, ErrorCode::Internal) => {
            "the request failed because of a programming error; see the log".to_owned()
        }
    }
}

/// What the last parameter of a path names.
fn named_object(path: &str) -> &'static str {
    let last = path.rsplit('/').find(|part| part.starts_with('{'));
    match last {
        Some("{doc_id}") => "document",
        Some("{task_id}") => "task",
        Some("{username}") => "user",
        Some("{group}") => "group",
        Some("{id}") if path.contains("/keys/") => "key",
        Some("{id}") => "webhook",
        _ => "space",
    }
}

const fn forbidden_message(access: Access) -> &'static str {
    match access {
        Access::Admin => "this needs an account of role admin",
        Access::AnyManager => "this needs an admin or a manager of a space",
        Access::SpaceManager => "this needs a manager of the space",
        Access::Owner => "the document belongs to another account",
        Access::TaskOwner => "the task belongs to another account",
        Access::Authenticated | Access::Unrestricted | Access::PendingUnrestricted => {
            "the API key is restricted and may not do this"
        }
        _ => {
            "the header X-Lkr-CSRF is missing: with the session in a cookie it must have the csrf_token of GET /api/v1/auth/me"
        }
    }
}
