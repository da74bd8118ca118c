//! Responses: with a payload in the envelope, with a payload alone, or with an error in the form of the path's protocol.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    body::MessageBody,
    http::{
        StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    web::Bytes,
};
use serde::Serialize;

use super::{envelope::envelope_body, error_format::ErrorFormat, request_id::RequestId};
use crate::error::{ApiError, ErrorCode};

/// The default `Retry-After`, in seconds.
const RETRY_AFTER: u64 = 1;

/// What a handler returns.
pub(crate) type HandlerResult = Result<ApiResponse, ApiError>;

/// A response without an error.
#[derive(Debug)]
pub(crate) enum ApiResponse {
    /// A payload for the envelope.
    Enveloped {
        code: u32,
        message: &'static str,
        status: StatusCode,
        /// JSON.
        data: Bytes,
        headers: HeaderMap,
    },
    /// A payload without the envelope, for clients of other protocols.
    Bare {
        /// JSON.
        data: Bytes,
        headers: HeaderMap,
    },
    /// A response that is sent as it is.
    Raw(HttpResponse),
}

impl ApiResponse {
    /// 200 with a payload.
    pub(crate) fn ok(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::OK, payload)
    }

    /// 200 with a payload that is JSON already.
    pub(crate) fn ok_json(data: Bytes) -> Self {
        Self::enveloped(StatusCode::OK, data)
    }

    /// 201 with a payload.
    pub(crate) fn created(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::CREATED, payload)
    }

    /// 202 with a payload.
    pub(crate) fn accepted(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::ACCEPTED, payload)
    }

    /// 200 with a payload that has no envelope.
    pub(crate) fn bare(payload: &impl Serialize) -> HandlerResult {
        Ok(Self::Bare { data: to_json(payload)?, headers: HeaderMap::new() })
    }

    /// 503 with a payload.
    pub(crate) fn not_ready(message: &'static str, payload: &impl Serialize) -> HandlerResult {
        let Self::Enveloped { data, mut headers, .. } = Self::ok(payload)? else { return Self::ok(payload) };
        headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        let code = ErrorCode::Overloaded;
        Ok(Self::Enveloped { code: code.number(), message, status: code.status(), data, headers })
    }

    fn with_status(status: StatusCode, payload: &impl Serialize) -> HandlerResult {
        Ok(Self::enveloped(status, to_json(payload)?))
    }

    fn enveloped(status: StatusCode, data: Bytes) -> Self {
        Self::Enveloped { code: 0, message: "ok", status, data, headers: HeaderMap::new() }
    }

    /// The number of bytes that the response holds in memory.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Enveloped { data, .. } | Self::Bare { data, .. } => data.len() as u64,
            Self::Raw(_) => 0,
        }
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        match &mut self {
            Self::Enveloped { headers, .. } | Self::Bare { headers, .. } => headers.insert(name, value),
            Self::Raw(response) => response.headers_mut().insert(name, value),
        };
        self
    }

    /// The HTTP response of a handler's result. The path of the request decides the form of an error.
    pub(crate) fn into_http(result: HandlerResult, request: &HttpRequest) -> HttpResponse {
        let id = RequestId::of(request);
        match result {
            Ok(Self::Raw(response)) => response,
            Ok(Self::Bare { data, headers }) => json_response(StatusCode::OK, headers, data),
            Ok(Self::Enveloped { code, message, status, data, headers }) => {
                json_response(status, headers, envelope_body(code, message, &data, &id))
            }
            Err(error) => error_response(error, ErrorFormat::of_path(request.path()), &id),
        }
    }
}

/// The JSON of a payload.
pub(crate) fn to_json(payload: &impl Serialize) -> Result<Bytes, ApiError> {
    serde_json::to_vec(payload).map(Bytes::from).map_err(|error| ApiError::internal(&error))
}

fn error_response(error: ApiError, format: ErrorFormat, id: &RequestId) -> HttpResponse {
    let mut response = HttpResponseBuilder::new(error.status);
    match error.code {
        ErrorCode::Unauthenticated => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        ErrorCode::Overloaded | ErrorCode::RateLimited => {
            response.insert_header((header::RETRY_AFTER, error.retry_after.unwrap_or(RETRY_AFTER)));
        }
        _ => {}
    }
    let body = format.body(&error, id);
    if let Some(size) = error.size {
        response.insert_header((header::CONTENT_RANGE, format!("bytes */{size}")));
    }
    if let Some(allow) = error.allow {
        response.insert_header((header::ALLOW, allow));
    }
    with_json(&mut response, body)
}

fn json_response(status: StatusCode, headers: HeaderMap, body: impl MessageBody + 'static) -> HttpResponse {
    let mut response = HttpResponseBuilder::new(status);
    for pair in headers {
        response.insert_header(pair);
    }
    with_json(&mut response, body)
}

fn with_json(response: &mut HttpResponseBuilder, body: impl MessageBody + 'static) -> HttpResponse {
    response
        .content_type("application/json")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(body)
}
