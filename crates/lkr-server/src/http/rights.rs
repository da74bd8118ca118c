//! What a caller may do in spaces, by the directory at one moment.

use std::{collections::BTreeSet, sync::Arc};

use lkr::{Creator, Scope, SpaceName, Task, TaskKind, TaskLists};
use lkr_auth::KeyId;
use lkr_spaces::{Caller, Directory, SpaceRole, WriteAccess};

use super::caller::{self, in_spaces};
use crate::error::{ApiError, ErrorCode, ErrorSubject};

/// A caller and the directory in which its rights are judged.
#[derive(Debug, Clone)]
pub(crate) struct Rights {
    pub(crate) caller: Caller,
    /// The id of the caller's API key.
    pub(crate) key: Option<KeyId>,
    pub(crate) directory: Arc<Directory>,
}

impl Rights {
    /// What a caller may do by a directory.
    pub(crate) fn of(caller: Option<&caller::Caller>, directory: Arc<Directory>) -> Self {
        let key = caller.and_then(|caller| caller.credential.key_id());
        Self { caller: in_spaces(caller), key, directory }
    }

    /// The spaces that a request is about: the named ones, or all that the caller may read.
    ///
    /// # Errors
    /// Not found, with the first named space that the caller may not read.
    pub(crate) fn scope(&self, named: Option<&[SpaceName]>) -> Result<Scope, ApiError> {
        self.directory.resolve(&self.caller, named).map_err(|name| no_space(&name))
    }

    /// The named spaces.
    ///
    /// # Errors
    /// Not found, with the first that the caller may not read.
    pub(crate) fn named(&self, names: &[SpaceName]) -> Result<BTreeSet<SpaceName>, ApiError> {
        self.scope(Some(names)).map(|_| names.iter().cloned().collect())
    }

    /// Everything that the caller may read.
    pub(crate) fn readable(&self) -> Scope {
        self.directory.readable(&self.caller)
    }

    pub(crate) fn may_read(&self, space: &SpaceName) -> bool {
        self.directory.may_read(&self.caller, space)
    }

    /// Whether the caller may change and delete a document: a manager of its space, and its creator while a writer there.
    pub(crate) fn may_change(&self, space: &SpaceName, creator: &Creator) -> bool {
        self.directory.may_manage(&self.caller, space)
            || (self.is(creator) && self.directory.may_write(&self.caller, space) == WriteAccess::Allowed)
    }

    /// The refusal to change something in a space that the caller may read: it needs another right if the caller created it.
    pub(crate) fn change_refused(&self, what: &str, space: &SpaceName, creator: &Creator) -> ApiError {
        if !self.is(creator) {
            return ApiError::forbidden(format!("the {what} belongs to another account"));
        }
        ApiError::forbidden(match self.directory.may_write(&self.caller, space) {
            WriteAccess::Deleting => being_deleted(space),
            WriteAccess::Unknown => format!("the space {space} does not exist"),
            WriteAccess::Allowed | WriteAccess::Forbidden => needs_writer(space),
        })
    }

    pub(crate) fn may_manage(&self, space: &SpaceName) -> bool {
        self.directory.may_manage(&self.caller, space)
    }

    /// Checks that the caller may add documents to a space.
    pub(crate) fn check_writable(&self, space: &SpaceName) -> Result<(), ApiError> {
        match self.directory.may_write(&self.caller, space) {
            WriteAccess::Allowed => Ok(()),
            WriteAccess::Forbidden => Err(ApiError::forbidden(needs_writer(space))),
            WriteAccess::Deleting => Err(ApiError::new(ErrorCode::Conflict, being_deleted(space))),
            WriteAccess::Unknown => Err(no_space(space)),
        }
    }

    /// Whether the caller sees a task: one about a document if it may read its space, and its own ones. Tasks about several
    /// documents are seen by admins, and the deletion of a space by its managers.
    pub(crate) fn may_read_task(&self, task: &Task) -> bool {
        if task.subject.doc_id().is_some() {
            let space = task.space.clone().unwrap_or_default();
            return self.may_read(&space) || self.is_own_task(task);
        }
        let is_manager = |space: &SpaceName| task.kind == TaskKind::DeleteSpace && self.is_manager(space);
        self.caller.is_unrestricted_admin()
            || self.is_own_task(task)
            || task.space.as_ref().is_some_and(is_manager)
    }

    /// The lists that contain every task that the caller sees, of the named spaces or of all.
    pub(crate) fn task_lists(&self, named: Option<&Scope>) -> TaskLists {
        if let Some(Scope::Spaces(spaces)) = named {
            return TaskLists::Of { spaces: BTreeSet::clone(spaces), asked_by: None };
        }
        let Scope::Spaces(spaces) = self.readable() else { return TaskLists::All };
        if self.caller.is_unrestricted_admin() {
            return TaskLists::All;
        }
        // Spaces that are being deleted are unreadable, but their managers see the task that deletes them.
        let managed = self.directory.spaces().map(|space| &space.name);
        let mut spaces = Arc::unwrap_or_clone(spaces);
        spaces.extend(managed.filter(|space| self.is_manager(space)).cloned());
        let asked_by = match &self.caller {
            Caller::Account { .. } if self.is_limited() => self.key.map(|key| key.to_string()),
            Caller::Account { id, .. } => Some(id.clone()),
            _ => None,
        };
        TaskLists::Of { spaces, asked_by }
    }

    fn is_manager(&self, space: &SpaceName) -> bool {
        self.directory.role(&self.caller, space) == Some(SpaceRole::Manager)
    }

    /// Whether the caller is a key that is limited to spaces.
    fn is_limited(&self) -> bool {
        matches!(&self.caller, Caller::Account { key: Some(key), .. } if key.spaces.is_some())
    }

    /// Whether the caller may cancel, retry and delete a task that it sees.
    pub(crate) fn may_change_task(&self, task: &Task) -> bool {
        if self.caller.is_unrestricted_admin() {
            return true;
        }
        match (&task.space, task.subject.doc_id()) {
            (Some(space), Some(_)) => self.may_change(space, &task.created_by),
            _ => self.is_own_task(task),
        }
    }

    /// Whether the caller created a task. Those of a key that is limited to spaces are the ones that it asked for itself, as long as
    /// one of its spaces exists.
    fn is_own_task(&self, task: &Task) -> bool {
        if !self.is_limited() {
            return self.is(&task.created_by);
        }
        let asked = self.key.is_some_and(|key| task.key.as_ref().is_some_and(|id| *id == key.to_string()));
        asked && !self.readable().is_empty()
    }

    fn is(&self, creator: &Creator) -> bool {
        matches!(&self.caller, Caller::Account { id, .. } if creator.is(id))
    }
}

fn needs_writer(space: &SpaceName) -> String {
    format!("this needs a writer of the space {space}")
}

fn being_deleted(space: &SpaceName) -> String {
    format!("the space {space} is being deleted")
}

fn no_space(name: &SpaceName) -> ApiError {
    unknown_name(name.as_str())
}

/// The space with a name that a client sent. A malformed name is the name of no space.
pub(crate) fn named_space(name: String) -> Result<SpaceName, ApiError> {
    let shown: String = name.chars().take(100).collect();
    SpaceName::new(name).ok_or_else(|| unknown_name(&shown))
}

fn unknown_name(name: &str) -> ApiError {
    ApiError::not_found(format!("no space has the name {name:?}")).about(ErrorSubject::Space)
}

/// The most spaces that a request or an API key may name. Chosen, not measured.
const MAX_SPACES: usize = 100;

/// The spaces with the names that a client sent.
pub(crate) fn space_names(names: Vec<String>) -> Result<Vec<SpaceName>, ApiError> {
    if !(1..=MAX_SPACES).contains(&names.len()) {
        let count = names.len();
        return Err(ApiError::invalid(format!("spaces has {count} names, 1 to {MAX_SPACES} are allowed")));
    }
    names.into_iter().map(named_space).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_of_a_space_is_told_from_reader_and_outsider() {
        let account = Caller::Account { id: "1".to_owned(), is_admin: false, key: None };
        let code = |caller: &Caller, name: &str| {
            let rights = Rights { caller: caller.clone(), key: None, directory: Arc::default() };
            rights.check_writable(&SpaceName::new(name).unwrap()).err().map(|error| error.code)
        };
        assert_eq!(code(&account, "default"), None);
        assert_eq!(code(&Caller::Anonymous, "default"), Some(ErrorCode::Forbidden));
        assert_eq!(code(&account, "legal"), Some(ErrorCode::NotFound));
    }
}
