use std::net::IpAddr;

use actix_web::{HttpRequest, http::header::HeaderName, web::Data};
use lkr_domain::{DocId, TaskId};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{
    Access, Query, RequestId, address, body,
    endpoint::admit_to,
    form::{self, Form, FormRules},
};
use crate::{
    error::{ApiError, Code},
    state::{AppState, Services},
};

/// A request on its way through a handler.
pub(crate) struct Cx {
    request: HttpRequest,
    access: Access,
    state: Data<AppState>,
}

impl Cx {
    pub(crate) fn new(request: HttpRequest, access: Access) -> Result<Self, ApiError> {
        let state = request.app_data::<Data<AppState>>().cloned();
        let state =
            state.ok_or_else(|| ApiError::new(Code::Internal, "the service is put together wrongly"))?;
        Ok(Self { request, access, state })
    }

    pub(crate) fn request(&self) -> &HttpRequest {
        &self.request
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    /// What all requests share, for what outlives a borrow of the request.
    pub(crate) fn state_data(&self) -> Data<AppState> {
        self.state.clone()
    }

    /// The stores behind the service.
    pub(crate) fn services(&self) -> Result<&Services, ApiError> {
        self.state.services()
    }

    /// What tells the request from all others.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId::of(&self.request)
    }

    /// The address that the request comes from.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        address::client(&self.request, &self.state.options.trusted_proxies)
    }

    /// A header's values. One that is no text is an empty one, which nobody could mean.
    pub(crate) fn header(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.request.headers().get_all(name).map(|value| value.to_str().unwrap_or_default())
    }

    /// The query's parameters.
    pub(crate) fn query(&self) -> Result<Query, ApiError> {
        Query::parse(self.request.query_string())
    }

    /// Refuses any query parameter.
    pub(crate) fn no_query(&self) -> Result<(), ApiError> {
        self.query()?.finish()
    }

    /// The body as a JSON object, of at most `limit` bytes.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self, limit: usize) -> Result<T, ApiError> {
        self.no_query()?;
        body::check_content_type(self.request.headers())?;
        let body = self.body(limit).await?;
        body::parse(body.as_ref())
    }

    /// Refuses a body that says anything: it may be absent, or an empty JSON object.
    pub(crate) async fn no_body(&mut self) -> Result<(), ApiError> {
        self.no_query()?;
        let body = self.body(1024).await?;
        if body.as_ref().is_empty() { Ok(()) } else { body::parse::<body::Nothing>(body.as_ref()).map(drop) }
    }

    /// The body. Its sender decides how long that takes, and a right may end meanwhile: where one is needed, it is
    /// looked at again.
    async fn body(&mut self, limit: usize) -> Result<body::Body, ApiError> {
        let body = body::read(&self.request, limit, &self.state.bodies).await?;
        self.admit_again().await?;
        Ok(body)
    }

    /// The body as a form with a file. As with other bodies, the right is looked at again behind it.
    pub(crate) async fn form(&mut self, rules: &FormRules<'_>) -> Result<Form, ApiError> {
        self.no_query()?;
        let form = form::read(&self.request, rules).await?;
        self.admit_again().await?;
        Ok(form)
    }

    /// Looks at the right once more, where one is needed: after what takes a while, and before what lasts.
    pub(crate) async fn admit_again(&self) -> Result<(), ApiError> {
        if self.access.needs_login(self.state.options.require_login_for_reads) {
            admit_to(self.access, &self.request, &self.state).await?;
        }
        Ok(())
    }

    /// Waits for room for an answer of some `bytes`, before it is made: one that is made whole takes its memory until
    /// its reader has it.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<(), ApiError> {
        self.state.answers.reserve(&self.request, bytes).await
    }

    /// The document that the path names. What cannot be an id is the id of no document.
    pub(crate) fn doc_id(&self) -> Result<DocId, ApiError> {
        self.part("doc_id").parse().map_err(|_| unknown_document())
    }

    /// The task that the path names.
    pub(crate) fn task_id(&self) -> Result<TaskId, ApiError> {
        self.part("task_id").parse().map_err(|_| unknown_task())
    }

    /// The username that the path names.
    pub(crate) fn username(&self) -> String {
        percent_decode_str(self.part("username")).decode_utf8_lossy().into_owned()
    }

    /// A part of the path as it was sent.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }
}

pub(crate) fn unknown_document() -> ApiError {
    ApiError::not_found("no such document")
}

pub(crate) fn unknown_task() -> ApiError {
    ApiError::not_found("no such task")
}
