//! Who may call what. Each right is a type that handlers take as their first argument, so that none can forget it.

use actix_web::{HttpRequest, http::header};
use lkr::Creator;
use lkr_auth::{Account, Actor, Credential, Identity, Role};

use super::RequestId;
use crate::{
    error::{ApiError, Code, Failing},
    state::Services,
};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody; a credential is not looked at.
    Open,
    /// Anybody, whatever is configured; a credential must be good.
    Unlisted,
    /// Anybody, unless reading needs a login; a credential must be good.
    Reader,
    /// Any account.
    Member,
    /// Any account, also one that must change its password.
    Flagged,
    /// Accounts of role admin.
    Admin,
    /// Who brought in the document that the path names, and admins. Any account where there is no such document.
    Owner,
    /// Who asked for the task that the path names, and admins. Any account where there is no such task.
    TaskOwner,
}

impl Access {
    /// Whether a login is needed.
    #[must_use]
    pub const fn needs_login(self, login_for_reads: bool) -> bool {
        match self {
            Self::Open | Self::Unlisted => false,
            Self::Reader => login_for_reads,
            Self::Member | Self::Flagged | Self::Admin | Self::Owner | Self::TaskOwner => true,
        }
    }
}

/// Who called, and with which credential.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account: Account,
    pub(crate) credential: Credential,
    pub(crate) token: String,
    pub(crate) request_id: RequestId,
}

impl Caller {
    pub(crate) fn is_admin(&self) -> bool {
        self.account.role == Role::Admin
    }

    /// Who it is, for the audit log.
    pub(crate) fn by(&self) -> Actor<'_> {
        self.account.by(self.request_id.as_str())
    }

    /// Who it is, for what it makes.
    pub(crate) fn creator(&self) -> Creator {
        Creator { name: self.account.username.clone(), id: self.account.id.clone() }
    }
}

/// A right: what a route asks for, and what its handler gets.
pub(crate) trait Right: Sized + 'static {
    const ACCESS: Access;

    /// `None` where the right needs a caller and there is none.
    fn granted(caller: Option<Caller>) -> Option<Self>;
}

/// Stands for [`Access::Open`].
#[derive(Debug)]
pub(crate) struct Open;

/// Stands for [`Access::Unlisted`].
#[derive(Debug)]
pub(crate) struct Unlisted;

/// Stands for [`Access::Reader`].
#[derive(Debug)]
pub(crate) struct Reader;

/// Stands for [`Access::Member`].
#[derive(Debug)]
pub(crate) struct Member(pub(crate) Caller);

/// Stands for [`Access::Flagged`].
#[derive(Debug)]
pub(crate) struct Flagged(pub(crate) Caller);

/// Stands for [`Access::Admin`].
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) Caller);

/// Stands for [`Access::Owner`].
#[derive(Debug)]
pub(crate) struct Owner(pub(crate) Caller);

/// Stands for [`Access::TaskOwner`].
#[derive(Debug)]
pub(crate) struct TaskOwner;

impl Right for Open {
    const ACCESS: Access = Access::Open;

    fn granted(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Right for Unlisted {
    const ACCESS: Access = Access::Unlisted;

    fn granted(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Right for Reader {
    const ACCESS: Access = Access::Reader;

    fn granted(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Right for Member {
    const ACCESS: Access = Access::Member;

    fn granted(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Right for Flagged {
    const ACCESS: Access = Access::Flagged;

    fn granted(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Right for Admin {
    const ACCESS: Access = Access::Admin;

    fn granted(caller: Option<Caller>) -> Option<Self> {
        caller.filter(Caller::is_admin).map(Self)
    }
}

impl Right for Owner {
    const ACCESS: Access = Access::Owner;

    fn granted(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Right for TaskOwner {
    const ACCESS: Access = Access::TaskOwner;

    fn granted(caller: Option<Caller>) -> Option<Self> {
        caller.map(|_| Self)
    }
}

/// Admits a request or refuses it. The caller is answered where the right is theirs by their account; who needs
/// no login is served as anybody is.
pub(crate) async fn admit(
    access: Access,
    request: &HttpRequest,
    services: &Services,
    login_for_reads: bool,
) -> Result<Option<Caller>, ApiError> {
    if access == Access::Open {
        return Ok(None);
    }
    let caller = authenticate(request, services).await?;
    if !access.needs_login(login_for_reads) {
        return Ok(None);
    }
    let caller = caller
        .ok_or_else(|| ApiError::new(Code::Unauthenticated, "this needs a login: no credential was sent"))?;
    if caller.account.must_change_password && access != Access::Flagged {
        return Err(ApiError::new(
            Code::PasswordChangeRequired,
            "the password must be changed first: POST /api/v1/auth/password",
        ));
    }
    check_role(access, &caller, request, services).await?;
    Ok(Some(caller))
}

/// Refuses who may log in and yet may not do this.
async fn check_role(
    access: Access,
    caller: &Caller,
    request: &HttpRequest,
    services: &Services,
) -> Result<(), ApiError> {
    if caller.is_admin() {
        return Ok(());
    }
    match access {
        Access::Admin => Err(ApiError::forbidden("this needs an account of role admin")),
        Access::Owner => check_owner(caller, request, services).await,
        Access::TaskOwner => check_task_owner(caller, request, services).await,
        _ => Ok(()),
    }
}

/// Refuses whom the document that the path names does not belong to. What cannot be an id is no document's.
async fn check_owner(caller: &Caller, request: &HttpRequest, services: &Services) -> Result<(), ApiError> {
    let Some(doc_id) = request.match_info().get("doc_id").and_then(|id| id.parse().ok()) else {
        return Ok(());
    };
    let owner = services.kb.owner(doc_id).await.writing()?;
    if owner.is_none_or(|owner| owner.is(&caller.account.id)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the document is another account's"))
}

/// Refuses whom the task that the path names does not belong to. What cannot be an id is no task's.
async fn check_task_owner(
    caller: &Caller,
    request: &HttpRequest,
    services: &Services,
) -> Result<(), ApiError> {
    let Some(task_id) = request.match_info().get("task_id").and_then(|id| id.parse().ok()) else {
        return Ok(());
    };
    let task = services.kb.task(task_id).await.writing()?;
    if task.is_none_or(|task| task.created_by.is(&caller.account.id)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the task is another account's"))
}

/// Whose credential a request carries. One that is no good is refused wherever it is sent.
async fn authenticate(request: &HttpRequest, services: &Services) -> Result<Option<Caller>, ApiError> {
    let mut credentials = request.headers().get_all(header::AUTHORIZATION);
    let Some(credential) = credentials.next() else { return Ok(None) };
    let malformed = || {
        ApiError::new(
            Code::Unauthenticated,
            "the credential is malformed: Bearer and an access token are needed",
        )
    };
    if credentials.next().is_some() {
        return Err(malformed());
    }
    let (scheme, token) =
        credential.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(malformed());
    }
    let token = token.trim().to_owned();
    let Identity { account, credential } = services.auth.authenticate(&token).await?;
    Ok(Some(Caller { account, credential, token, request_id: RequestId::of(request) }))
}
