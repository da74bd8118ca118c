//! The Model Context Protocol, with the rights of the request's caller.

use std::{slice, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    web::{Bytes, Data},
};
use async_trait::async_trait;
use lkr::{Scope, SearchProfile, SpaceName, Submission};
use lkr_mcp::{Access as ToolAccess, ErrorKind, McpServer};
use lkr_spaces::WriteAccess;

use super::submissions::submission;
use crate::{
    error::{ApiError, ErrorCode},
    http::{
        Access, ApiResponse, Caller, Endpoint, HandlerResult, Reader, RequestContext, RequestId, Rights,
        caller_with, check_credential, named_space,
    },
    openapi::{OperationDoc, ResponseShape},
    state::{AppState, Services},
    wire::submission_options::SubmissionOptions,
};

/// The largest message. A document of 4 MiB is beyond what a model writes.
const BODY_BYTES: usize = 4 * 1024 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = OperationDoc::new(
        "MCP",
        "mcp",
        "Serves the Model Context Protocol",
        ResponseShape::Raw("application/json"),
    );
    vec![Endpoint::new(Method::POST, "/mcp", doc.unlisted(), serve)]
}

async fn serve(reader: Reader, mut cx: RequestContext) -> HandlerResult {
    let body = cx.bytes(BODY_BYTES).await?;
    let caller = reader.0.map(|caller| cx.current(caller));
    let access = CallerAccess { state: cx.state_data(), caller, request_id: cx.request_id() };
    let server = McpServer::new(cx.services()?.kb.clone(), Arc::new(access));
    let request = to_http(cx.request(), body)?;
    let response = lkr_mcp::answer(server, request, &cx.state().options.cors_origins).await;
    from_http(response).map(ApiResponse::Raw)
}

/// The request in the types that the protocol's library takes.
fn to_http(request: &HttpRequest, body: Bytes) -> Result<http::Request<Bytes>, ApiError> {
    let malformed = |error: http::Error| ApiError::invalid(format!("the request is malformed: {error}"));
    let mut converted = http::Request::post("/mcp").body(body).map_err(malformed)?;
    let headers = converted.headers_mut();
    for (name, value) in request.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes())
            .map_err(|error| malformed(error.into()))?;
        let value =
            http::HeaderValue::from_bytes(value.as_bytes()).map_err(|error| malformed(error.into()))?;
        headers.append(name, value);
    }
    // The library needs one, and HTTP/1.0 does not.
    headers.entry(http::header::HOST).or_insert(http::HeaderValue::from_static("localhost"));
    Ok(converted)
}

fn from_http(response: http::Response<bytes::Bytes>) -> Result<HttpResponse, ApiError> {
    let (head, body) = response.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16()).map_err(|error| ApiError::internal(&error))?;
    let mut converted = HttpResponse::build(status);
    for (name, value) in &head.headers {
        converted.append_header((name.as_str(), value.as_bytes()));
    }
    Ok(converted.body(body))
}

/// The access of the caller of one request.
#[derive(Debug)]
struct CallerAccess {
    state: Data<AppState>,
    caller: Option<Caller>,
    request_id: RequestId,
}

impl CallerAccess {
    fn services(&self) -> Result<&Services, ApiError> {
        self.state.services()
    }

    async fn rights(&self) -> Result<Rights, ApiError> {
        self.services()?.rights(self.caller.as_ref()).await
    }

    async fn new_submission(&self, space: Option<&str>) -> Result<Submission, ApiError> {
        let services = self.services()?;
        let refusal = || ApiError::forbidden("this credential may not add documents");
        let caller = self.caller.as_ref().filter(|caller| may_write(caller)).ok_or_else(refusal)?;
        // The message took the client's time to arrive, so the credential is checked again before a lasting change.
        let caller = caller_with(caller.token.clone(), self.request_id.clone(), services).await?;
        if !may_write(&caller) {
            return Err(refusal());
        }
        let options = SubmissionOptions { space: space.map(str::to_owned), ..SubmissionOptions::default() };
        submission(services, &caller, options).await
    }
}

/// Whether the credential may write at all.
fn may_write(caller: &Caller) -> bool {
    check_credential(Access::Authenticated, caller).is_ok()
}

#[async_trait]
impl ToolAccess for CallerAccess {
    async fn scope(&self, space: Option<&str>) -> lkr_mcp::Result<Scope> {
        let named = space.map(|name| named_space(name.to_owned())).transpose()?;
        Ok(self.rights().await?.scope(named.as_ref().map(slice::from_ref))?)
    }

    async fn spaces(&self) -> lkr_mcp::Result<Vec<SpaceName>> {
        let rights = self.rights().await?;
        let names = rights.directory.spaces().map(|space| &space.name);
        Ok(names.filter(|name| rights.may_read(name)).cloned().collect())
    }

    async fn may_add(&self) -> lkr_mcp::Result<bool> {
        if !self.caller.as_ref().is_some_and(may_write) {
            return Ok(false);
        }
        let rights = self.rights().await?;
        let mut names = rights.directory.spaces().map(|space| &space.name);
        Ok(names.any(|name| rights.directory.may_write(&rights.caller, name) == WriteAccess::Allowed))
    }

    async fn submission(&self, space: Option<&str>) -> lkr_mcp::Result<Submission> {
        Ok(self.new_submission(space).await?)
    }

    fn searched(&self, query: &str, took: Duration, profile: Option<&SearchProfile>) {
        self.state.record_search(&self.request_id, query, took, profile);
    }

    fn gathered(&self, query: &str, took: Duration, profile: &SearchProfile) {
        self.state.record_context(&self.request_id, query, took, profile);
    }
}

impl From<ApiError> for lkr_mcp::Error {
    fn from(error: ApiError) -> Self {
        let kind = match error.code {
            ErrorCode::Invalid => ErrorKind::Invalid,
            ErrorCode::NotFound => ErrorKind::NotFound,
            ErrorCode::Overloaded | ErrorCode::RateLimited => ErrorKind::Unavailable,
            ErrorCode::Internal => ErrorKind::Internal,
            _ => ErrorKind::Refused,
        };
        Self::new(kind, "serve", error.message)
    }
}
