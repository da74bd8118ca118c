use std::{collections::BTreeSet, sync::Arc};

use lkr_spaces::{
    Caller, ErrorKind, GroupName, KeyScope, NewGroup, NewSpace, ReadPolicy, Result, SpaceName, Spaces,
    WritePolicy,
};
use lkr_state::MemoryState;

pub(crate) fn spaces() -> Spaces {
    Spaces::new(Arc::new(MemoryState::default()))
}

pub(crate) fn name(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

pub(crate) fn group_name(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

pub(crate) fn new_space(space: &str, read: ReadPolicy, write: WritePolicy) -> NewSpace {
    NewSpace {
        name: name(space),
        title: format!("The space {space}"),
        description: String::new(),
        read,
        write,
        created_by: "admin".to_owned(),
    }
}

/// A space for members alone.
pub(crate) fn closed_space(space: &str) -> NewSpace {
    new_space(space, ReadPolicy::Members, WritePolicy::Members)
}

pub(crate) fn new_group(group: &str) -> NewGroup {
    NewGroup { name: group_name(group), title: String::new(), created_by: "admin".to_owned() }
}

pub(crate) fn account(id: &str) -> Caller {
    Caller::Account { id: id.to_owned(), is_admin: false, key: None }
}

pub(crate) fn admin() -> Caller {
    Caller::Account { id: "admin-id".to_owned(), is_admin: true, key: None }
}

/// The caller with an API key.
pub(crate) fn with_key(caller: Caller, spaces: Option<&[&str]>, write: bool) -> Caller {
    let spaces = spaces.map(|names| names.iter().map(|space| name(space)).collect::<BTreeSet<_>>());
    match caller {
        Caller::Account { id, is_admin, .. } => {
            Caller::Account { id, is_admin, key: Some(KeyScope { spaces, write }) }
        }
        other => other,
    }
}

#[track_caller]
pub(crate) fn kind_of<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error.kind(),
    }
}
