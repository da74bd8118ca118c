//! Cross-origin requests of browsers (the CORS protocol of the Fetch standard).

use actix_cors::{Cors, CorsError};
use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::Next,
};

use crate::{error::ApiError, http::ApiResponse};

/// How long a browser may remember the answer to a preflight, in seconds.
const PREFLIGHT_MAX_AGE: usize = 3_600;

/// Lets pages of these origins send requests, without cookies. Requests of other origins are answered without the headers by
/// which a browser would show the answer to the page.
pub(crate) fn cors(origins: &[String]) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "POST", "PUT", "PATCH", "DELETE"])
        .allowed_headers(["Authorization", "Content-Type", "If-Match", "Idempotency-Key", "X-Request-Id"])
        .expose_headers(["ETag", "Retry-After", "X-Cache", "X-Request-Id", "Content-Disposition"])
        .max_age(PREFLIGHT_MAX_AGE);
    origins.iter().fold(cors, |cors, origin| cors.allowed_origin(origin))
}

/// Answers a refused preflight with an error.
pub(crate) async fn refused_preflights(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let refusal = response.response().error().and_then(|error| error.as_error::<CorsError>());
    let Some(reason) = refusal.map(ToString::to_string) else { return Ok(response) };
    let origin = response.request().headers().get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let message = format!("request from a page of {}: {reason}", origin.unwrap_or("an unnamed origin"));
    let refusal = ApiResponse::into_http(Err(ApiError::invalid(message)), response.request());
    Ok(response.into_response(refusal))
}
