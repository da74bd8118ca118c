//! The spaces of documents. A space whose record was lost is created closed: its members are not known.

use lkr_domain::SpaceName;
use lkr_spaces::{NewSpace, ReadPolicy, SpaceChange, Spaces, WritePolicy};

use crate::{
    checker::Checker,
    ports::Ports,
    repair::{BoxError, RepairAction},
};

impl Checker<'_> {
    /// Checks that the space of a document exists.
    pub(crate) async fn check_space(&mut self, name: &SpaceName) {
        let Some(restorer) = &self.ports.restorer else { return };
        if !self.spaces.insert(name.clone()) {
            return;
        }
        match restorer.spaces.directory().await {
            Ok(directory) if directory.space(name).is_some() => {}
            Ok(_) => {
                let what = format!("documents are in the space {name}, which does not exist");
                self.report_finding(what, None, RepairAction::CreateSpace(name.clone())).await;
            }
            Err(error) => self.report_unchecked(format!("the space {name}"), error).await,
        }
    }

    /// Whether a space was deleted, with all its documents. Its name is never used again.
    pub(crate) async fn is_of_deleted_space(&self, name: &SpaceName) -> bool {
        let Some(restorer) = &self.ports.restorer else { return false };
        restorer.spaces.directory().await.is_ok_and(|directory| {
            directory.is_used(name) && directory.space(name).is_none_or(|space| space.deleting.is_some())
        })
    }
}

/// Creates a space that only an admin sees.
pub(crate) async fn create_closed_space(ports: &Ports, name: &SpaceName) -> Result<(), BoxError> {
    let Some(restorer) = &ports.restorer else { return Ok(()) };
    let new = NewSpace {
        name: name.clone(),
        title: String::new(),
        description: String::new(),
        read: ReadPolicy::Members,
        write: WritePolicy::Members,
        created_by: String::new(),
    };
    restorer.spaces.create(new, Vec::new()).await?;
    Ok(())
}

/// Stores the default space closed. Without a record it is open to everyone, which it may not have been.
pub(crate) async fn close_default_space(spaces: &Spaces) -> Result<(), BoxError> {
    spaces.ensure_default().await?;
    let (read, write) = (Some(ReadPolicy::Members), Some(WritePolicy::Members));
    let change = SpaceChange { read, write, ..SpaceChange::default() };
    spaces.change(&SpaceName::default(), change, Vec::new()).await?;
    Ok(())
}
