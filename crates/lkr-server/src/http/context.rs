//! What a handler gets to know of its request.

use std::{
    cell::RefCell,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderName},
    web::{Bytes, Data},
};
use lkr_domain::{DocId, SpaceName, TaskId};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{
    access::Access,
    admission::{Admission, admit},
    caller::Caller,
    client_address::client_address,
    client_quota::{Client, ClientQuota},
    form::{self, Form, FormRules, FormShares},
    json_body::{self, BufferedBody, EmptyObject},
    permitted_stream::StreamSubject,
    query::QueryParams,
    request_id::RequestId,
    rights::{Rights, named_space},
    session_cookie::{CookieSession, SessionCookie},
};
use crate::{
    error::{ApiError, ErrorCode, ErrorSubject},
    state::{AppState, Services},
};

/// A request that was admitted to its route.
pub(crate) struct RequestContext {
    request: HttpRequest,
    access: Access,
    state: Data<AppState>,
    client: Client,
    admitted: Admitted,
    /// The caller at the last admission, if the request was admitted more than once.
    current: RefCell<Option<Caller>>,
}

/// A read whose body arrives within this time is judged once, as if the body had been there at once. Chosen, not measured.
const QUICK_BODY: Duration = Duration::from_millis(100);

/// What a request was admitted for: what its handler believes while the client sends the body.
#[derive(Debug, Default)]
struct Admitted {
    has_caller: bool,
    has_document: bool,
    has_task: bool,
}

impl Admitted {
    const fn of(Admission { caller, document, task, .. }: &Admission) -> Self {
        Self { has_caller: caller.is_some(), has_document: document.is_some(), has_task: task.is_some() }
    }

    /// Checks that the request would be admitted to the same document or task now.
    fn check(&self, now: &Admission) -> Result<(), ApiError> {
        if self.has_document && now.document.is_none() {
            return Err(unknown_document());
        }
        if self.has_task && now.task.is_none() {
            return Err(unknown_task());
        }
        Ok(())
    }
}

impl RequestContext {
    pub(crate) fn new(request: HttpRequest, access: Access) -> Result<Self, ApiError> {
        let state = request.app_data::<Data<AppState>>().cloned();
        let state = state
            .ok_or_else(|| ApiError::new(ErrorCode::Internal, "the application has no state registered"))?;
        let client = Client::anonymous(client_address(&request, &state.options.trusted_proxies));
        Ok(Self {
            request,
            access,
            state,
            client,
            admitted: Admitted::default(),
            current: RefCell::default(),
        })
    }

    /// The context of a page that anybody may see, for a path without a route.
    pub(crate) fn of_page(request: HttpRequest) -> Result<Self, ApiError> {
        Self::new(request, Access::Public)
    }

    /// Admits the request or refuses it, and notes whose quotas count from now on.
    pub(super) async fn admit(&mut self) -> Result<Admission, ApiError> {
        let admission = admit(self.access, &self.request, &self.state).await?;
        if let Some(caller) = &admission.caller {
            self.client = Client::Account(caller.account.id.clone());
        }
        self.admitted = Admitted::of(&admission);
        Ok(admission)
    }

    /// Who the quotas count for.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// What the caller may do in spaces, if the request would be admitted now and may read the subject of its stream.
    ///
    /// # Errors
    /// That nobody knows, because the accounts cannot be read.
    pub(super) async fn current_rights(&self, subject: &StreamSubject) -> Result<Option<Rights>, ApiError> {
        let admission = match admit(self.access, &self.request, &self.state).await {
            Ok(admission) => admission,
            Err(error) if matches!(error.code, ErrorCode::Overloaded | ErrorCode::Internal) => {
                return Err(error);
            }
            Err(_) => return Ok(None),
        };
        let rights = self.services()?.rights(admission.caller.as_ref()).await?;
        Ok(Some(rights).filter(|rights| subject.is_readable(rights)))
    }

    /// What the caller may do in spaces now, for a request that writes.
    pub(crate) async fn rights_to_write(&self, caller: Option<&Caller>) -> Result<Rights, ApiError> {
        let current = self.current.borrow().clone();
        self.services()?.rights_to_write(current.as_ref().or(caller)).await
    }

    /// The space with a name that a body sent, if it sent one.
    ///
    /// # Errors
    /// Not found, if the caller may not read it.
    pub(crate) async fn readable_space(
        &self,
        caller: &Caller,
        name: Option<String>,
    ) -> Result<Option<SpaceName>, ApiError> {
        let space = name.map(named_space).transpose()?;
        if let Some(space) = &space {
            self.rights_to_write(Some(caller)).await?.scope(Some(std::slice::from_ref(space)))?;
        }
        Ok(space)
    }

    /// What the caller may do in spaces now.
    pub(crate) async fn rights(&self, caller: Option<&Caller>) -> Result<Rights, ApiError> {
        let current = self.current.borrow().clone();
        self.services()?.rights(current.as_ref().or(caller)).await
    }

    pub(crate) fn request(&self) -> &HttpRequest {
        &self.request
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    /// The application's state, for code that outlives a borrow of the request.
    pub(crate) fn state_data(&self) -> Data<AppState> {
        self.state.clone()
    }

    pub(crate) fn services(&self) -> Result<&Services, ApiError> {
        self.state.services()
    }

    pub(crate) fn request_id(&self) -> RequestId {
        RequestId::of(&self.request)
    }

    /// The client's address.
    pub(crate) fn client_address(&self) -> Option<IpAddr> {
        client_address(&self.request, &self.state.options.trusted_proxies)
    }

    /// The cookie that keeps the session of the request's client.
    pub(crate) fn session_cookie(&self) -> SessionCookie {
        SessionCookie::of(&self.request, &self.state.options.trusted_proxies)
    }

    /// What became of the session in the request's cookie.
    pub(crate) async fn cookie_session(&self) -> CookieSession {
        let Ok(services) = self.services() else { return CookieSession::Unknown };
        match self.session_cookie().token(&self.request) {
            Ok(None) if self.may_lack_cookies() => CookieSession::Unknown,
            Ok(None) => CookieSession::None,
            Ok(Some(token)) => match services.auth.authenticate_session(&token).await {
                Ok(_) => CookieSession::Valid,
                Err(error) if error.kind() == lkr_auth::ErrorKind::Unauthenticated => CookieSession::Ended,
                Err(_) => CookieSession::Unknown,
            },
            Err(_) => CookieSession::Ended,
        }
    }

    /// Whether the browser may have a cookie of the site that it does not send with this request, as `SameSite=Strict` demands. Browsers
    /// tell where a request comes from only by HTTPS and to this machine.
    fn may_lack_cookies(&self) -> bool {
        let from = self.header(HeaderName::from_static("sec-fetch-site")).next();
        !matches!(from, Some("none" | "same-origin" | "same-site"))
    }

    /// The value of a cookie that no right depends on.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header(header::COOKIE).flat_map(|line| line.split(';'));
        let mut named =
            pairs.filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.trim(), value.trim()));
        named.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// A header's values. A value that is not text counts as empty.
    pub(crate) fn header(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.request.headers().get_all(name).map(|value| value.to_str().unwrap_or_default())
    }

    pub(crate) fn query(&self) -> Result<QueryParams, ApiError> {
        QueryParams::parse(self.request.query_string())
    }

    /// Refuses any query parameter.
    pub(crate) fn no_query(&self) -> Result<(), ApiError> {
        self.query()?.finish()
    }

    /// The body as a JSON object of at most `limit` bytes.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self, limit: usize) -> Result<T, ApiError> {
        self.no_query()?;
        json_body::check_content_type(self.request.headers())?;
        let body = self.body(limit).await?;
        json_body::parse(body.as_ref())
    }

    /// The body, of at most `limit` bytes, whatever its content type.
    pub(crate) async fn bytes(&mut self, limit: usize) -> Result<Bytes, ApiError> {
        self.no_query()?;
        let body = self.body(limit).await?;
        Ok(Bytes::copy_from_slice(body.as_ref()))
    }

    /// The body as a JSON object of at most `limit` bytes; `None` if there is no body.
    pub(crate) async fn optional_json<T: DeserializeOwned>(
        &mut self,
        limit: usize,
    ) -> Result<Option<T>, ApiError> {
        self.no_query()?;
        let body = self.body(limit).await?;
        if body.as_ref().is_empty() {
            return Ok(None);
        }
        json_body::check_content_type(self.request.headers())?;
        json_body::parse(body.as_ref()).map(Some)
    }

    /// Refuses a body with content. It may be absent or an empty JSON object.
    pub(crate) async fn no_body(&mut self) -> Result<(), ApiError> {
        self.no_query()?;
        self.no_content().await
    }

    /// [`no_body`](Self::no_body) for a route that has query parameters.
    pub(crate) async fn no_content(&mut self) -> Result<(), ApiError> {
        let body = self.body(1024).await?;
        if body.as_ref().is_empty() {
            return Ok(());
        }
        json_body::parse::<EmptyObject>(body.as_ref()).map(drop)
    }

    /// The body. The client decides how long that takes, and a permission may end meanwhile, so it is checked again; a read only
    /// if the body took long.
    async fn body(&mut self, limit: usize) -> Result<BufferedBody, ApiError> {
        let begun = Instant::now();
        let body =
            json_body::read(&self.request, limit, self.state.body_quota.share(self.client.clone())).await?;
        if self.needs_login() || begun.elapsed() > QUICK_BODY {
            self.admit_again().await?;
        }
        Ok(body)
    }

    /// The body as a form with a file. The permission is checked again afterwards.
    pub(crate) async fn form(&mut self, rules: &FormRules<'_>) -> Result<Form, ApiError> {
        self.no_query()?;
        let share = |quota: &Arc<ClientQuota>| quota.share(self.client.clone());
        let shares =
            FormShares { memory: share(&self.state.body_quota), spooled: share(&self.state.upload_quota) };
        let form = form::read(&self.request, rules, shares).await?;
        self.admit_again().await?;
        Ok(form)
    }

    /// Checks the permission again, if the route needs one or a credential was sent: after slow work and before a lasting change.
    ///
    /// # Errors
    /// Those of an admission; not found, if the caller sees the document or task of the path no more.
    pub(crate) async fn admit_again(&self) -> Result<(), ApiError> {
        if !self.needs_login() && !self.admitted.has_caller {
            return Ok(());
        }
        let admission = admit(self.access, &self.request, &self.state).await?;
        self.admitted.check(&admission)?;
        self.current.replace(admission.caller);
        Ok(())
    }

    /// The caller with the role and the limits that it had when the permission was last checked.
    pub(crate) fn current(&self, caller: Caller) -> Caller {
        self.current.borrow().clone().unwrap_or(caller)
    }

    fn needs_login(&self) -> bool {
        self.access.needs_login(self.state.options.require_login_for_reads)
    }

    /// Waits for the memory of a response of about `bytes` before it is built. A response that is not streamed stays in
    /// memory until its client has read it.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<(), ApiError> {
        self.state.response_memory.reserve(&self.request, &self.client, bytes).await
    }

    /// The document that the path names. A malformed id is the id of no document.
    pub(crate) fn doc_id(&self) -> Result<DocId, ApiError> {
        self.path_part("doc_id").parse().map_err(|_| unknown_document())
    }

    /// The task that the path names.
    pub(crate) fn task_id(&self) -> Result<TaskId, ApiError> {
        self.path_part("task_id").parse().map_err(|_| unknown_task())
    }

    /// The username that the path names.
    pub(crate) fn username(&self) -> String {
        self.decoded_part("username")
    }

    /// A named part of the path, decoded.
    pub(crate) fn decoded_part(&self, name: &str) -> String {
        percent_decode_str(self.path_part(name)).decode_utf8_lossy().into_owned()
    }

    /// A named part of the path, not decoded.
    pub(crate) fn path_part(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }
}

pub(crate) fn unknown_document() -> ApiError {
    ApiError::not_found("no such document")
}

pub(crate) fn unknown_task() -> ApiError {
    ApiError::not_found("no such task")
}

pub(crate) fn unknown_space() -> ApiError {
    ApiError::not_found("no such space").about(ErrorSubject::Space)
}
