//! Who may call what. Each permission is a type that handlers take as their first argument, so none can forget it.

use actix_web::{HttpRequest, http::header};
use lkr::Creator;
use lkr_auth::{Account, Actor, Credential, Identity, Role};

use super::request_id::RequestId;
use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    state::{AppState, Services},
};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody. A credential is ignored.
    Public,
    /// Anybody, whatever the configuration. A credential must be valid.
    PublicVerified,
    /// Anybody, unless the configuration requires a login for reads. A credential must be valid.
    Reader,
    /// Any account.
    Authenticated,
    /// Any account, including one that must change its password first.
    PendingPassword,
    /// Accounts of role admin.
    Admin,
    /// Admins, and the owner of the document that the path names. Any account if there is no such document.
    Owner,
    /// Admins, and the creator of the task that the path names. Any account if there is no such task.
    TaskOwner,
}

impl Access {
    /// Whether a login is needed.
    #[must_use]
    pub const fn needs_login(self, login_for_reads: bool) -> bool {
        match self {
            Self::Public | Self::PublicVerified => false,
            Self::Reader => login_for_reads,
            Self::Authenticated | Self::PendingPassword | Self::Admin | Self::Owner | Self::TaskOwner => true,
        }
    }
}

/// The caller's account and credential.
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

    /// The caller as the audit log records it.
    pub(crate) fn actor(&self) -> Actor<'_> {
        self.account.by(self.request_id.as_str())
    }

    /// The caller as the creator of a document or task.
    pub(crate) fn creator(&self) -> Creator {
        Creator { name: self.account.username.clone(), id: self.account.id.clone() }
    }
}

/// A permission: what a route requires, and what its handler receives.
pub(crate) trait Permission: Sized + 'static {
    const ACCESS: Access;

    /// The permission of an admitted caller; `None` if the permission needs a caller and there is none.
    fn from_caller(caller: Option<Caller>) -> Option<Self>;
}

/// Permission of [`Access::Public`].
#[derive(Debug)]
pub(crate) struct Public;

/// Permission of [`Access::PublicVerified`].
#[derive(Debug)]
pub(crate) struct PublicVerified;

/// Permission of [`Access::Reader`].
#[derive(Debug)]
pub(crate) struct Reader;

/// Permission of [`Access::Authenticated`].
#[derive(Debug)]
pub(crate) struct Authenticated(pub(crate) Caller);

/// Permission of [`Access::PendingPassword`].
#[derive(Debug)]
pub(crate) struct PendingPassword(pub(crate) Caller);

/// Permission of [`Access::Admin`].
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) Caller);

/// Permission of [`Access::Owner`].
#[derive(Debug)]
pub(crate) struct Owner(pub(crate) Caller);

/// Permission of [`Access::TaskOwner`].
#[derive(Debug)]
pub(crate) struct TaskOwner;

impl Permission for Public {
    const ACCESS: Access = Access::Public;

    fn from_caller(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Permission for PublicVerified {
    const ACCESS: Access = Access::PublicVerified;

    fn from_caller(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Permission for Reader {
    const ACCESS: Access = Access::Reader;

    fn from_caller(_: Option<Caller>) -> Option<Self> {
        Some(Self)
    }
}

impl Permission for Authenticated {
    const ACCESS: Access = Access::Authenticated;

    fn from_caller(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Permission for PendingPassword {
    const ACCESS: Access = Access::PendingPassword;

    fn from_caller(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Permission for Admin {
    const ACCESS: Access = Access::Admin;

    fn from_caller(caller: Option<Caller>) -> Option<Self> {
        caller.filter(Caller::is_admin).map(Self)
    }
}

impl Permission for Owner {
    const ACCESS: Access = Access::Owner;

    fn from_caller(caller: Option<Caller>) -> Option<Self> {
        caller.map(Self)
    }
}

impl Permission for TaskOwner {
    const ACCESS: Access = Access::TaskOwner;

    fn from_caller(caller: Option<Caller>) -> Option<Self> {
        caller.map(|_| Self)
    }
}

/// Admits a request or refuses it. Returns the caller if one was verified. A route that needs no login serves everybody
/// alike; quotas tell callers from anonymous clients.
pub(super) async fn admit(
    access: Access,
    request: &HttpRequest,
    state: &AppState,
) -> Result<Option<Caller>, ApiError> {
    if access == Access::Public {
        return Ok(None);
    }
    let services = state.services()?;
    let caller = authenticate(request, services).await?;
    if !access.needs_login(state.options.require_login_for_reads) {
        return Ok(caller);
    }
    let caller = caller.ok_or_else(|| {
        ApiError::new(ErrorCode::Unauthenticated, "this needs a login: no credential was sent")
    })?;
    if caller.account.must_change_password && access != Access::PendingPassword {
        return Err(ApiError::new(
            ErrorCode::PasswordChangeRequired,
            "the password must be changed first: POST /api/v1/auth/password",
        ));
    }
    check_role(access, &caller, request, services).await?;
    Ok(Some(caller))
}

/// Refuses a caller whose role or ownership does not suffice.
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

/// Refuses a caller that does not own the document that the path names. A malformed id belongs to nobody.
async fn check_owner(caller: &Caller, request: &HttpRequest, services: &Services) -> Result<(), ApiError> {
    let Some(doc_id) = request.match_info().get("doc_id").and_then(|id| id.parse().ok()) else {
        return Ok(());
    };
    let owner = services.kb.owner(doc_id).await.for_write()?;
    if owner.is_none_or(|owner| owner.is(&caller.account.id)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the document belongs to another account"))
}

/// Refuses a caller that did not create the task that the path names. A malformed id belongs to nobody.
async fn check_task_owner(
    caller: &Caller,
    request: &HttpRequest,
    services: &Services,
) -> Result<(), ApiError> {
    let Some(task_id) = request.match_info().get("task_id").and_then(|id| id.parse().ok()) else {
        return Ok(());
    };
    let task = services.kb.task(task_id).await.for_write()?;
    if task.is_none_or(|task| task.created_by.is(&caller.account.id)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the task belongs to another account"))
}

/// The caller of a request; `None` without a credential. A bad credential is refused, even if the route needs none.
async fn authenticate(request: &HttpRequest, services: &Services) -> Result<Option<Caller>, ApiError> {
    let mut credentials = request.headers().get_all(header::AUTHORIZATION);
    let Some(credential) = credentials.next() else { return Ok(None) };
    let malformed = || {
        ApiError::new(
            ErrorCode::Unauthenticated,
            "the credential is malformed: expected Bearer and an access token",
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
