use std::{fmt, ops::Deref, sync::Arc};

use lkr_catalog::Idempotency;
use lkr_domain::{Creator, Dedup, DocId, SpaceName};
use lkr_state::Write;

/// How a document is submitted.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The account that submits it.
    pub created_by: Creator,
    /// The space of a new document. A replacement stays where the document is.
    pub space: SpaceName,
    /// Warnings to repeat in the task's result.
    pub warnings: Vec<String>,
    /// When a new document counts as a duplicate. A replacement never does.
    pub dedup: Dedup,
    /// Replaces a live document of the same source in the space instead of adding another one.
    pub upsert: Option<Upsert>,
    /// Makes repeating the submission safe.
    pub idempotency: Option<Idempotency>,
    /// Expectations of the step that accepts the submission, for example that its space is not being deleted.
    pub expectations: Vec<Write>,
    /// The request that submits it, as a W3C `traceparent`. The trace of the task links to it.
    pub origin: Option<String>,
    /// Additional records to write in the step that accepts the replacement of a live document.
    pub on_replace: OnReplace,
}

impl Submission {
    /// A submission by an account, with everything else at its default.
    #[must_use]
    pub fn by(created_by: Creator) -> Self {
        Self { created_by, ..Self::default() }
    }
}

/// Which documents an upsert may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// Documents of the account that submits it.
    Own,
    /// All documents of the space.
    Any,
}

/// Makes the additional records, such as an audit entry, of the step that replaces a live document.
#[derive(Clone)]
pub struct OnReplace(Arc<dyn Fn(DocId) -> Vec<Write> + Send + Sync>);

impl OnReplace {
    /// Calls `writes` with the id of the replaced document.
    pub fn new(writes: impl Fn(DocId) -> Vec<Write> + Send + Sync + 'static) -> Self {
        Self(Arc::new(writes))
    }
}

impl Default for OnReplace {
    fn default() -> Self {
        Self::new(|_| Vec::new())
    }
}

impl fmt::Debug for OnReplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnReplace")
    }
}

impl Deref for OnReplace {
    type Target = dyn Fn(DocId) -> Vec<Write> + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
