//! What all routes share: permissions, request bodies, query parameters, responses and the request middleware.

mod access;
mod admission;
mod caller;
mod client_address;
mod client_quota;
mod connection;
mod context;
mod cors;
mod endpoint;
mod envelope;
mod error_format;
mod form;
mod in_flight;
mod json_body;
mod middleware;
mod part_headers;
mod permitted_stream;
mod query;
mod request_body;
mod request_id;
mod request_line;
mod request_span;
mod response;
mod response_framing;
mod response_memory;
mod rights;
mod session_cookie;
mod sse;
mod streamed_envelope;
mod write_timeout;

pub use access::Access;
pub(crate) use access::{
    Admin, AnyManager, Authenticated, AuthenticatedReader, Owner, PendingPassword, PendingUnrestricted,
    Public, PublicVerified, Reader, SpaceManager, SpaceReader, TaskOwner, Unrestricted,
};
pub(crate) use admission::{OwnedDocument, caller_with, check_credential};
pub(crate) use caller::Caller;
pub(crate) use client_quota::{Client, ClientQuota, QuotaLimits, QuotaShare};
pub(crate) use connection::Connection;
pub(crate) use context::{RequestContext, unknown_document, unknown_task};
pub(crate) use cors::{cors, refused_preflights};
pub use endpoint::Endpoint;
pub(crate) use endpoint::{answer_unknown_path, answer_wrong_method};
pub(crate) use error_format::ErrorFormat;
pub(crate) use form::{Form, FormFile, FormRules};
pub(crate) use in_flight::InFlight;
#[cfg(test)]
pub(crate) use json_body::parse as parse_json;
pub(crate) use json_body::{
    BODY_LIMITS, JsonObject, SMALL_BODY_BYTES, SecretInput, object, objects, optional_object, string_map,
};
pub(crate) use middleware::request_middleware;
pub(crate) use permitted_stream::{
    Recheck, StreamSubject, permission_lost, rendered_while_permitted, while_permitted,
};
pub(crate) use query::{QueryParams, cursor};
pub(crate) use request_id::RequestId;
pub(crate) use response::{ApiResponse, HandlerResult, to_json};
pub(crate) use response_memory::ResponseMemory;
pub(crate) use rights::{Rights, named_space, space_names};
pub(crate) use session_cookie::{CSRF_HEADER, CookieSession, PLAIN_COOKIE};
pub(crate) use sse::{KEEP_ALIVE, KEEP_ALIVE_INTERVAL, sse_event, sse_response};
pub(crate) use streamed_envelope::{stream_envelope, stream_json};
pub(crate) use write_timeout::WriteTimeout;
