//! Streamable HTTP. Each request is served alone: there are no sessions, so any process serves any request.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::Value;

use crate::{
    McpServer,
    json_rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, error_response},
};

/// The most values and keys of a message. The protocol's library reads a message several times into trees, which take hundreds of
/// bytes for each.
const MAX_VALUES: usize = 20_000;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers a request to the protocol's path. A request with the header `Origin` comes from a page in a browser, and is refused
/// unless its origin is one of `origins`, or the page is this server's own on a loopback address. Errors are errors of JSON-RPC.
pub async fn answer(server: McpServer, request: Request<Bytes>, origins: &[String]) -> Response<Bytes> {
    let message = request.body().clone();
    if has_more_values(&message, MAX_VALUES) {
        return refused(INVALID_REQUEST, &format!("the message has more than {MAX_VALUES} values"));
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(message.len().max(1))
        .with_allowed_origins(
            origins.iter().map(|origin| with_port(origin)).chain(own_origin(request.headers())),
        )
        .enforce_origin_validation()
        .disable_allowed_hosts();
    let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(is_json_type);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let (head, body) = service.handle(request.map(Full::new)).await.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    match head.status {
        // To the library, a message that it cannot read has a wrong type.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => unreadable(&message),
        _ => as_json_rpc(Response::from_parts(head, body)),
    }
}

fn is_json_type(value: &HeaderValue) -> bool {
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Whether a message has more values and keys than `most`: there is a separator or an opening bracket before each.
fn has_more_values(message: &[u8], most: usize) -> bool {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_separator = |&&byte: &&u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' | b':' | b',' => return !is_text,
            _ => {}
        }
        false
    };
    message.iter().filter(is_separator).nth(most).is_some()
}

/// The refusal of a message that is no message of the protocol.
fn unreadable(message: &[u8]) -> Response<Bytes> {
    let (code, reason) = json_rpc::unreadable(&serde_json::from_slice(message));
    refused(code, &reason)
}

/// The response to a message that is not served.
fn refused(code: i32, reason: &str) -> Response<Bytes> {
    let mut response = Response::new(error_body(code, reason));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// The response, with an error in plain text as an error of JSON-RPC.
fn as_json_rpc(response: Response<Bytes>) -> Response<Bytes> {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(is_json_type);
    if response.status().is_success() || is_json {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let message = String::from_utf8_lossy(&body).into_owned();
    head.headers.insert(header::CONTENT_TYPE, JSON);
    head.headers.remove(header::CONTENT_LENGTH);
    let code = if head.status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
    Response::from_parts(head, error_body(code, &message))
}

/// The body of an error that belongs to no request of JSON-RPC.
fn error_body(code: i32, message: &str) -> Bytes {
    Bytes::from(error_response(&Value::Null, code, message).to_string())
}

/// The origin with its port. Without one the library would allow every port.
fn with_port(origin: &str) -> String {
    let Some((scheme, host)) = origin.split_once("://") else { return origin.to_owned() };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match scheme {
        "https" if !has_port => format!("{origin}:443"),
        "http" if !has_port => format!("{origin}:80"),
        _ => origin.to_owned(),
    }
}

/// The origin of pages of this server, if it was asked by a loopback address. A name that an attacker points to this machine
/// is another host.
fn own_origin(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (host, "80"),
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]").then(|| format!("http://{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json_rpc::PARSE_ERROR;

    #[test]
    fn origin_gets_the_port_of_its_scheme() {
        assert_eq!(with_port("https://app.example.org"), "https://app.example.org:443");
        assert_eq!(with_port("http://[::1]"), "http://[::1]:80");
        assert_eq!(with_port("http://localhost:3000"), "http://localhost:3000");
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        let message = br#"{"a": "[[,{:\\\",", "b": [1, 2]}"#;
        assert!(has_more_values(message, 5) && !has_more_values(message, 6));
        let many = format!("[{}]", ["{}"; 30_000].join(","));
        assert!(has_more_values(many.as_bytes(), MAX_VALUES) && !has_more_values(b"", 0));
    }

    #[test]
    fn only_a_loopback_host_has_pages_of_its_own() {
        let own = |host: &'static str| {
            own_origin(&HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]))
        };
        assert_eq!(own("localhost:8080").as_deref(), Some("http://localhost:8080"));
        assert_eq!(own("[::1]").as_deref(), Some("http://[::1]:80"));
        assert_eq!(own("evil.example:8080"), None);
        assert_eq!(own("localhost.evil.example"), None);
    }

    #[test]
    fn unreadable_message_is_told_why() {
        for (message, code) in
            [("{", PARSE_ERROR), ("[]", INVALID_REQUEST), ("{}", INVALID_REQUEST), ("1", INVALID_REQUEST)]
        {
            let response = unreadable(message.as_bytes());
            let body: Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(
                (response.status().as_u16(), &body["error"]["code"]),
                (400, &json!(code)),
                "{message}"
            );
        }
    }

    #[test]
    fn plain_text_error_becomes_an_error_of_json_rpc() {
        let plain = Response::builder().status(406).body(Bytes::from_static(b"Not Acceptable")).unwrap();
        let response = as_json_rpc(plain);
        assert_eq!(response.status(), 406);
        let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["error"], json!({ "code": INVALID_REQUEST, "message": "Not Acceptable" }));
    }
}
