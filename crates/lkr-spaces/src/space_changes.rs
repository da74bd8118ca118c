//! Creating, changing and deleting spaces.

use lkr_domain::{SpaceName, TaskId};
use lkr_state::{Expect, Write};
use time::OffsetDateTime;

use crate::{
    Directory, Error, NewSpace, Result, Space, SpaceChange, Spaces,
    records::{closed_key, encode_closed, member_key, space_key},
    spaces::put_space,
};

impl Spaces {
    /// Creates a space without members.
    ///
    /// # Errors
    /// `Invalid` if a text or the policies are not allowed, `Taken` if a space has or had the name.
    pub async fn create(&self, new: NewSpace, alongside: Vec<Write>) -> Result<Space> {
        let space = Space::create(&new, self.clock.now())?;
        let change = |directory: &Directory| {
            if directory.is_used(&space.name) {
                let reason = format!("a space has or had the name {:?}", space.name.as_str());
                return Err(Error::taken("create space", reason));
            }
            Ok((space.clone(), vec![put_space(&space)?]))
        };
        self.update("create space", &alongside, change).await
    }

    /// Changes a space.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, or if it is being deleted; `Invalid` if a text or the policies are not
    /// allowed.
    pub async fn change(
        &self,
        name: &SpaceName,
        change: SpaceChange,
        alongside: Vec<Write>,
    ) -> Result<Space> {
        let update = |directory: &Directory| {
            let before = open_space(directory, name)?;
            let after = before.changed(&change, self.clock.now())?;
            let writes = if after == *before { Vec::new() } else { vec![put_space(&after)?] };
            Ok((after, writes))
        };
        self.update("change space", &alongside, update).await
    }

    /// Deletes a space that has no documents; the caller checks that, and passes
    /// [`check_no_admission`](Self::check_no_admission) alongside. Its name is never used again.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, or if it is being deleted; `Conflict` if it is the default space.
    pub async fn delete_empty(&self, name: &SpaceName, alongside: Vec<Write>) -> Result<()> {
        let change = |directory: &Directory| {
            let space = deletable_space(directory, name)?;
            let mut writes = removal(directory, space);
            writes.push(close(name, self.clock.now())?);
            Ok(((), writes))
        };
        self.update("delete space", &alongside, change).await
    }

    /// Begins to delete a space with its documents. From now on, nobody may read it and no document can be added.
    ///
    /// # Errors
    /// `NotFound` if there is no such space, or if it is being deleted; `Conflict` if it is the default space.
    pub async fn begin_delete(&self, name: &SpaceName, task: TaskId, alongside: Vec<Write>) -> Result<Space> {
        let change = |directory: &Directory| {
            let before = deletable_space(directory, name)?;
            let after = Space { deleting: Some(task), ..before.clone() };
            let writes = vec![put_space(&after)?, close(name, self.clock.now())?];
            Ok((after, writes))
        };
        self.update("begin to delete space", &alongside, change).await
    }

    /// Deletes a space whose deletion `task` began, after all of its documents are deleted. Returns `false`, and writes
    /// nothing, if that has happened already.
    pub async fn finish_delete(&self, name: &SpaceName, task: TaskId, alongside: Vec<Write>) -> Result<bool> {
        let change = |directory: &Directory| {
            let space = directory.space(name).filter(|space| space.deleting == Some(task));
            let writes = space.map_or_else(Vec::new, |space| removal(directory, space));
            Ok((space.is_some(), writes))
        };
        self.update("finish deleting space", &alongside, change).await
    }
}

/// The space, unless it is being deleted.
pub(crate) fn open_space<'a>(directory: &'a Directory, name: &SpaceName) -> Result<&'a Space> {
    let space = directory.space(name).filter(|space| space.deleting.is_none());
    space.ok_or_else(|| Error::no_space(name))
}

fn deletable_space<'a>(directory: &'a Directory, name: &SpaceName) -> Result<&'a Space> {
    if name.is_default() {
        return Err(Error::conflict("delete space", "the default space cannot be deleted"));
    }
    open_space(directory, name)
}

/// The write that closes a name for ever.
fn close(name: &SpaceName, now: OffsetDateTime) -> Result<Write> {
    Ok(Write::put(closed_key(name), Expect::Any, encode_closed(now)?))
}

/// The writes that remove a space and its memberships.
fn removal(directory: &Directory, space: &Space) -> Vec<Write> {
    let members = directory.member_ids(&space.name).map(|id| member_key(&space.name, id));
    let keys = [space_key(&space.name)].into_iter().chain(members);
    keys.map(|key| Write::delete(key, Expect::Any)).collect()
}
