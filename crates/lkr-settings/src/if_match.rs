use crate::{Error, Result};

/// What must hold of the settings for a change to be done: the `If-Match` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Nothing.
    Any,
    /// The present entity tag is one of these, quotes included. A weak tag (`W/"…"`) never is.
    Tags(Vec<String>),
}

impl IfMatch {
    pub(crate) fn check(&self, etag: &str) -> Result<()> {
        match self {
            Self::Any => Ok(()),
            // The present tag is a strong one, so that equal text is strong comparison.
            Self::Tags(tags) if tags.iter().any(|tag| tag == etag) => Ok(()),
            Self::Tags(_) => Err(Error::conflict("the settings have changed since they were read")),
        }
    }
}
