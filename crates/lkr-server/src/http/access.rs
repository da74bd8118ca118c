//! Who may call what. Each permission is a type that handlers take as their first argument, so none can forget it.

use lkr::TaskId;
use lkr_auth::KeyScope;

use super::{
    admission::{Admission, AdmittedSpace, OwnedDocument},
    caller::{Caller, in_spaces},
    context::{unknown_document, unknown_task},
};
use crate::error::ApiError;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody. A credential is ignored.
    Public,
    /// Anybody, whatever the configuration. A credential must be valid.
    PublicVerified,
    /// Anybody, unless the configuration requires a login for reads. A credential must be valid.
    Reader,
    /// Any account, for reading.
    AuthenticatedReader,
    /// Any account. An API key must not be restricted to reading.
    Authenticated,
    /// Any account. An API key must not be restricted at all.
    Unrestricted,
    /// Any account, including one that must change its password first.
    PendingPassword,
    /// Any account, including one that must change its password first. An API key must not be restricted at all.
    PendingUnrestricted,
    /// Accounts of role admin. An API key must not be restricted at all.
    Admin,
    /// Admins, and managers of any space. An API key must not be restricted at all.
    AnyManager,
    /// Admins, and the owner of the document that the path names. Any account if there is no such document.
    Owner,
    /// Admins, and the creator of the task that the path names. Any account if there is no such task.
    TaskOwner,
    /// Callers that may read the space that the path names.
    SpaceReader,
    /// Managers of the space that the path names. An API key must not be restricted at all.
    SpaceManager,
}

impl Access {
    /// Whether a login is needed.
    #[must_use]
    pub const fn needs_login(self, login_for_reads: bool) -> bool {
        match self {
            Self::Public | Self::PublicVerified => false,
            Self::Reader | Self::SpaceReader => login_for_reads,
            Self::AuthenticatedReader
            | Self::Authenticated
            | Self::Unrestricted
            | Self::PendingPassword
            | Self::PendingUnrestricted
            | Self::Admin
            | Self::AnyManager
            | Self::Owner
            | Self::TaskOwner
            | Self::SpaceManager => true,
        }
    }

    /// Whether an API key with this scope may call the route.
    #[must_use]
    pub const fn admits(self, scope: &KeyScope) -> bool {
        match self {
            Self::Public
            | Self::PublicVerified
            | Self::Reader
            | Self::SpaceReader
            | Self::AuthenticatedReader
            | Self::PendingPassword => true,
            Self::Authenticated | Self::Owner | Self::TaskOwner => scope.write,
            Self::Unrestricted
            | Self::PendingUnrestricted
            | Self::Admin
            | Self::AnyManager
            | Self::SpaceManager => !scope.is_restricted(),
        }
    }

    /// Whether an account may call the route before it changes its password.
    #[must_use]
    pub const fn serves_pending_password(self) -> bool {
        matches!(self, Self::PendingPassword | Self::PendingUnrestricted)
    }

    /// Whether an account may lack the rights for the route.
    #[must_use]
    pub const fn may_be_forbidden(self) -> bool {
        !matches!(
            self,
            Self::Public
                | Self::PublicVerified
                | Self::Reader
                | Self::SpaceReader
                | Self::AuthenticatedReader
                | Self::PendingPassword
        )
    }
}

/// A permission: what a route requires, and what its handler receives.
pub(crate) trait Permission: Sized + 'static {
    const ACCESS: Access;

    /// The permission of an admitted request; `None` if the permission needs a caller or a space and there is none.
    fn from_admission(admission: Admission) -> Option<Self>;
}

/// Permission of [`Access::Public`].
#[derive(Debug)]
pub(crate) struct Public;

/// Permission of [`Access::PublicVerified`].
#[derive(Debug)]
pub(crate) struct PublicVerified;

/// Permission of [`Access::Reader`]. It knows the caller, which decides what is readable.
#[derive(Debug)]
pub(crate) struct Reader(pub(crate) Option<Caller>);

/// Permission of [`Access::Owner`].
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) caller: Caller,
    /// `None` if there is no such document for the caller.
    pub(crate) document: Option<OwnedDocument>,
}

/// Permission of [`Access::TaskOwner`].
#[derive(Debug)]
pub(crate) struct TaskOwner {
    pub(crate) caller: Caller,
    /// `None` if there is no such task for the caller.
    task: Option<TaskId>,
}

/// Permission of [`Access::AnyManager`].
#[derive(Debug)]
pub(crate) struct AnyManager;

/// Permission of [`Access::SpaceReader`].
#[derive(Debug)]
pub(crate) struct SpaceReader {
    pub(crate) caller: Option<Caller>,
    pub(crate) admitted: AdmittedSpace,
}

/// Permission of [`Access::SpaceManager`].
#[derive(Debug)]
pub(crate) struct SpaceManager {
    pub(crate) caller: Caller,
    pub(crate) admitted: AdmittedSpace,
}

/// Declares the permissions that contain the caller alone.
macro_rules! caller_permissions {
    ($($name:ident),*) => {$(
        #[doc = concat!("Permission of [`Access::", stringify!($name), "`].")]
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) Caller);

        impl Permission for $name {
            const ACCESS: Access = Access::$name;

            fn from_admission(admission: Admission) -> Option<Self> {
                admission.caller.map(Self)
            }
        }
    )*};
}

caller_permissions!(AuthenticatedReader, Authenticated, Unrestricted, PendingPassword, PendingUnrestricted);

/// Permission of [`Access::Admin`].
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) Caller);

impl Owner {
    /// The document.
    ///
    /// # Errors
    /// Not found, if there is no such document for the caller.
    pub(crate) fn document(&self) -> Result<&OwnedDocument, ApiError> {
        self.document.as_ref().ok_or_else(unknown_document)
    }
}

impl TaskOwner {
    /// The task.
    ///
    /// # Errors
    /// Not found, if there is no such task for the caller.
    pub(crate) fn task_id(&self) -> Result<TaskId, ApiError> {
        self.task.ok_or_else(unknown_task)
    }
}

impl Reader {
    /// The caller as the rights in spaces judge it.
    pub(crate) fn spaces_caller(&self) -> lkr_spaces::Caller {
        in_spaces(self.0.as_ref())
    }
}

impl SpaceReader {
    /// The caller as the rights in spaces judge it.
    pub(crate) fn spaces_caller(&self) -> lkr_spaces::Caller {
        in_spaces(self.caller.as_ref())
    }
}

impl Permission for Public {
    const ACCESS: Access = Access::Public;

    fn from_admission(_: Admission) -> Option<Self> {
        Some(Self)
    }
}

impl Permission for PublicVerified {
    const ACCESS: Access = Access::PublicVerified;

    fn from_admission(_: Admission) -> Option<Self> {
        Some(Self)
    }
}

impl Permission for Reader {
    const ACCESS: Access = Access::Reader;

    fn from_admission(admission: Admission) -> Option<Self> {
        Some(Self(admission.caller))
    }
}

impl Permission for Admin {
    const ACCESS: Access = Access::Admin;

    fn from_admission(admission: Admission) -> Option<Self> {
        admission.caller.filter(Caller::is_admin).map(Self)
    }
}

impl Permission for TaskOwner {
    const ACCESS: Access = Access::TaskOwner;

    fn from_admission(admission: Admission) -> Option<Self> {
        Some(Self { caller: admission.caller?, task: admission.task })
    }
}

impl Permission for Owner {
    const ACCESS: Access = Access::Owner;

    fn from_admission(admission: Admission) -> Option<Self> {
        Some(Self { caller: admission.caller?, document: admission.document })
    }
}

impl Permission for AnyManager {
    const ACCESS: Access = Access::AnyManager;

    fn from_admission(admission: Admission) -> Option<Self> {
        admission.caller.map(|_| Self)
    }
}

impl Permission for SpaceReader {
    const ACCESS: Access = Access::SpaceReader;

    fn from_admission(admission: Admission) -> Option<Self> {
        let Admission { caller, space, .. } = admission;
        Some(Self { caller, admitted: space? })
    }
}

impl Permission for SpaceManager {
    const ACCESS: Access = Access::SpaceManager;

    fn from_admission(admission: Admission) -> Option<Self> {
        Some(Self { caller: admission.caller?, admitted: admission.space? })
    }
}
