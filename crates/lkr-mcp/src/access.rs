//! What a caller may read and add.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use lkr::{
    Creator, KnowledgeBase, Scope, SearchProfile, SpaceName, Submission,
    spaces::{Caller, Spaces},
};

use crate::{Error, ErrorKind, Result};

/// The rights of one caller. Each call of a tool asks anew, so that a right that was taken away is gone at the next call.
#[async_trait]
pub trait Access: fmt::Debug + Send + Sync + 'static {
    /// The spaces that the caller may read, or the named one.
    ///
    /// # Errors
    /// `NotFound` if the caller may not read the named space.
    async fn scope(&self, space: Option<&str>) -> Result<Scope>;

    /// The names of the spaces that the caller may read, in order.
    async fn spaces(&self) -> Result<Vec<SpaceName>>;

    /// Whether the caller may add documents to any space.
    async fn may_add(&self) -> Result<bool>;

    /// The submission of a new document, to the named space or the default one.
    ///
    /// # Errors
    /// `NotFound` if the caller may not read the space, `Refused` if it may not add documents there.
    async fn submission(&self, space: Option<&str>) -> Result<Submission>;

    /// Called after each search with its query, its duration and where the time went; without a profile it was answered by the
    /// cache.
    fn searched(&self, query: &str, took: Duration, profile: Option<&SearchProfile>) {
        let _ = (query, took, profile);
    }

    /// Called after each context was gathered.
    fn gathered(&self, query: &str, took: Duration, profile: &SearchProfile) {
        let _ = (query, took, profile);
    }
}

/// The access of a program that may do everything, for example on a folder of its own.
#[derive(Debug)]
pub struct FullAccess {
    kb: KnowledgeBase,
    creator: Creator,
    writes: bool,
}

impl FullAccess {
    /// Access to everything. Added documents are recorded as created by `creator`; if `writes` is false, nothing is added.
    #[must_use]
    pub fn new(kb: KnowledgeBase, creator: Creator, writes: bool) -> Self {
        Self { kb, creator, writes }
    }
}

#[async_trait]
impl Access for FullAccess {
    async fn scope(&self, space: Option<&str>) -> Result<Scope> {
        let named = space.map(named_space).transpose()?;
        Ok(self.kb.scope_of(&Caller::Everything, named.as_ref().map(std::slice::from_ref)).await?)
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>> {
        let directory = self.kb.spaces().directory().await.map_err(unavailable)?;
        Ok(directory.spaces().map(|space| space.name.clone()).collect())
    }

    async fn may_add(&self) -> Result<bool> {
        Ok(self.writes)
    }

    async fn submission(&self, space: Option<&str>) -> Result<Submission> {
        if !self.writes {
            return Err(Error::new(ErrorKind::Refused, "add", "this server was started to read only"));
        }
        self.scope(space).await?;
        let space = space.map(named_space).transpose()?.unwrap_or_default();
        Ok(Submission {
            expectations: Spaces::admit(&space).into(),
            space,
            ..Submission::by(self.creator.clone())
        })
    }
}

/// The space with a name that a client sent. A malformed name is the name of no space.
fn named_space(name: &str) -> Result<SpaceName> {
    SpaceName::new(name.to_owned()).ok_or_else(|| {
        let shown: String = name.chars().take(100).collect();
        Error::not_found("read spaces", format!("no space has the name {shown:?}"))
    })
}

fn unavailable(error: impl std::error::Error) -> Error {
    tracing::error!(%error, "cannot read the spaces");
    Error::new(ErrorKind::Unavailable, "read spaces", "the knowledge base is unavailable; see its log")
}
