//! Streamable HTTP. Each request is served alone: there are no sessions, so any process serves any request.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::json;

use crate::McpServer;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers a request to the protocol's path. A request with the header `Origin` comes from a page in a browser, and is refused
/// unless its origin is one of `origins`. Errors are errors of JSON-RPC.
pub async fn answer(server: McpServer, request: Request<Bytes>, origins: &[String]) -> Response<Bytes> {
    let limit = request.body().len();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(limit.max(1))
        .with_allowed_origins(origins.iter().map(|origin| with_port(origin)))
        .enforce_origin_validation()
        .disable_allowed_hosts();
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    let (head, body) = service.handle(request.map(Full::new)).await.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    as_json_rpc(Response::from_parts(head, body))
}

/// The response, with an error in plain text as an error of JSON-RPC.
fn as_json_rpc(response: Response<Bytes>) -> Response<Bytes> {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == JSON);
    if response.status().is_success() || is_json {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let message = String::from_utf8_lossy(&body).into_owned();
    head.headers.insert(header::CONTENT_TYPE, JSON);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head.clone(), error_body(head.status, &message))
}

/// The body of an error that belongs to no request of JSON-RPC.
fn error_body(status: StatusCode, message: &str) -> Bytes {
    let code = if status.is_server_error() { -32_603 } else { -32_600 };
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    Bytes::from(error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_gets_the_port_of_its_scheme() {
        assert_eq!(with_port("https://app.example.org"), "https://app.example.org:443");
        assert_eq!(with_port("http://[::1]"), "http://[::1]:80");
        assert_eq!(with_port("http://localhost:3000"), "http://localhost:3000");
    }

    #[test]
    fn plain_text_error_becomes_an_error_of_json_rpc() {
        let plain = Response::builder().status(406).body(Bytes::from_static(b"Not Acceptable")).unwrap();
        let response = as_json_rpc(plain);
        assert_eq!(response.status(), 406);
        let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["error"], json!({ "code": -32_600, "message": "Not Acceptable" }));
    }
}
