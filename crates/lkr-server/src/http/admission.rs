//! Whether a request is admitted to its route.

use std::sync::Arc;

use actix_web::{HttpRequest, http::header};
use lkr::{DocId, TaskId};
use lkr_auth::Identity;
use lkr_spaces::{Directory, Space, SpaceName};

use super::{
    access::Access,
    caller::{Caller, in_spaces},
    context::unknown_space,
    request_id::RequestId,
    session_cookie::{SessionCookie, check_csrf},
};
use crate::{
    error::{ApiError, ErrorCode, ErrorSubject, KbResultExt},
    state::{AppState, Services},
};

/// What is known of an admitted request.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// The caller, if a credential was verified.
    pub(crate) caller: Option<Caller>,
    /// The space that the path names, for a route whose access depends on it.
    pub(crate) space: Option<AdmittedSpace>,
    /// The document that the path names, for a route whose access depends on it; `None` if it does not exist for the caller.
    pub(crate) document: Option<OwnedDocument>,
    /// The task that the path names, for a route whose access depends on it; `None` if it does not exist for the caller.
    pub(crate) task: Option<TaskId>,
}

/// A document that the caller may change.
#[derive(Debug, Clone)]
pub(crate) struct OwnedDocument {
    pub(crate) doc_id: DocId,
    pub(crate) space: SpaceName,
}

/// A space, and the directory in which the caller's rights were judged.
#[derive(Debug, Clone)]
pub(crate) struct AdmittedSpace {
    pub(crate) directory: Arc<Directory>,
    pub(crate) space: Space,
}

/// Admits a request or refuses it. A route that needs no login returns a verified caller too; quotas tell callers from
/// anonymous clients, and the caller decides which spaces are readable.
pub(super) async fn admit(
    access: Access,
    request: &HttpRequest,
    state: &AppState,
) -> Result<Admission, ApiError> {
    if access == Access::Public {
        return Ok(Admission::default());
    }
    let services = state.services()?;
    let caller = authenticate(request, state, services).await?;
    if access.needs_login(state.options.require_login_for_reads) {
        let caller = caller.as_ref().ok_or_else(|| {
            let message = "this needs a login: no credential was sent";
            ApiError::new(ErrorCode::Unauthenticated, message).about(ErrorSubject::CredentialForm)
        })?;
        check_credential(access, caller)?;
        check_role(access, caller, services).await?;
    }
    let space = admit_to_space(access, caller.as_ref(), request, services).await?;
    let document = match access {
        Access::Owner => admit_to_document(caller.as_ref(), request, services).await?,
        _ => None,
    };
    let task = match access {
        Access::TaskOwner => admit_to_task(caller.as_ref(), request, services).await?,
        _ => None,
    };
    Ok(Admission { caller, space, document, task })
}

/// Refuses a caller that must change its password first, and an API key that is restricted to less.
pub(crate) fn check_credential(access: Access, caller: &Caller) -> Result<(), ApiError> {
    if caller.account.must_change_password && !access.serves_pending_password() {
        return Err(ApiError::new(
            ErrorCode::PasswordChangeRequired,
            "the password must be changed first: POST /api/v1/auth/password",
        ));
    }
    if caller.credential.key_scope().is_some_and(|scope| !access.admits(scope)) {
        return Err(ApiError::forbidden("the API key is restricted and may not do this"));
    }
    Ok(())
}

/// Refuses a caller whose role or ownership does not suffice.
async fn check_role(access: Access, caller: &Caller, services: &Services) -> Result<(), ApiError> {
    if caller.is_admin() {
        return Ok(());
    }
    match access {
        Access::Admin => Err(ApiError::forbidden("this needs an account of role admin")),
        Access::AnyManager => check_manager(caller, services).await,
        _ => Ok(()),
    }
}

/// Refuses a caller that manages no space.
async fn check_manager(caller: &Caller, services: &Services) -> Result<(), ApiError> {
    if services.directory().await?.is_manager_anywhere(&caller.in_spaces()) {
        return Ok(());
    }
    Err(ApiError::forbidden("this needs an admin or a manager of a space"))
}

/// The space that the path names, if the access depends on it. To a caller that may not read it, it does not exist.
async fn admit_to_space(
    access: Access,
    caller: Option<&Caller>,
    request: &HttpRequest,
    services: &Services,
) -> Result<Option<AdmittedSpace>, ApiError> {
    if !matches!(access, Access::SpaceReader | Access::SpaceManager) {
        return Ok(None);
    }
    let name = request.match_info().get("space").and_then(SpaceName::new).ok_or_else(unknown_space)?;
    let directory = services.directory().await?;
    let caller = in_spaces(caller);
    let space = directory.space(&name).filter(|_| directory.may_read(&caller, &name));
    let space = space.cloned().ok_or_else(unknown_space)?;
    if access == Access::SpaceManager && !directory.may_manage(&caller, &name) {
        return Err(ApiError::forbidden("this needs a manager of the space"));
    }
    Ok(Some(AdmittedSpace { directory, space }))
}

/// The document that the path names, if it exists for the caller. Refuses a caller that may read it and not change it. A
/// malformed id is the id of no document.
async fn admit_to_document(
    caller: Option<&Caller>,
    request: &HttpRequest,
    services: &Services,
) -> Result<Option<OwnedDocument>, ApiError> {
    let Some(doc_id) = request.match_info().get("doc_id").and_then(|id| id.parse().ok()) else {
        return Ok(None);
    };
    let rights = services.rights_to_write(caller).await?;
    let Some((space, creator)) = services.kb.home(&rights.readable(), doc_id).await.for_write()? else {
        return Ok(None);
    };
    if !rights.may_change(&space, &creator) {
        return Err(rights.change_refused("document", &space, &creator));
    }
    Ok(Some(OwnedDocument { doc_id, space }))
}

/// The task that the path names, if it exists for the caller. Refuses a caller that may read it and not change it. A
/// malformed id is the id of no task.
async fn admit_to_task(
    caller: Option<&Caller>,
    request: &HttpRequest,
    services: &Services,
) -> Result<Option<TaskId>, ApiError> {
    let Some(task_id) = request.match_info().get("task_id").and_then(|id| id.parse().ok()) else {
        return Ok(None);
    };
    let rights = services.rights_to_write(caller).await?;
    let task = services.kb.task_in(&rights.task_lists(None), task_id).await.for_write()?;
    let Some(task) = task.filter(|task| rights.may_read_task(task)) else { return Ok(None) };
    if !rights.may_change_task(&task) {
        let space = task.space.unwrap_or_default();
        return Err(rights.change_refused("task", &space, &task.created_by));
    }
    Ok(Some(task_id))
}

/// The caller of a request; `None` without a credential. A bad credential is refused, even if the route needs none. The
/// header decides where there is one, and the session's cookie otherwise.
async fn authenticate(
    request: &HttpRequest,
    state: &AppState,
    services: &Services,
) -> Result<Option<Caller>, ApiError> {
    if let Some(token) = bearer_token(request)? {
        return caller_with(token, RequestId::of(request), services).await.map(Some);
    }
    let cookie = SessionCookie::of(request, &state.options.trusted_proxies);
    let Some(token) = cookie.token(request)? else { return Ok(None) };
    let Identity { account, credential } = services.auth.authenticate_session(&token).await?;
    check_csrf(request, &token)?;
    let request_id = RequestId::of(request);
    Ok(Some(Caller { account, credential, token, request_id, came_by_cookie: true }))
}

/// The access token or API key in the header; `None` without the header.
fn bearer_token(request: &HttpRequest) -> Result<Option<String>, ApiError> {
    let mut credentials = request.headers().get_all(header::AUTHORIZATION);
    let Some(credential) = credentials.next() else { return Ok(None) };
    let malformed = || {
        let message = "the credential is malformed: expected Bearer and an access token";
        ApiError::new(ErrorCode::Unauthenticated, message).about(ErrorSubject::CredentialForm)
    };
    if credentials.next().is_some() {
        return Err(malformed());
    }
    let (scheme, token) =
        credential.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(malformed());
    }
    Ok(Some(token.trim().to_owned()))
}

/// The caller with an access token or API key, as the accounts know it now.
pub(crate) async fn caller_with(
    token: String,
    request_id: RequestId,
    services: &Services,
) -> Result<Caller, ApiError> {
    let Identity { account, credential } = services.auth.authenticate(&token).await?;
    Ok(Caller { account, credential, token, request_id, came_by_cookie: false })
}
