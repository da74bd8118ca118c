use crate::{Error, Result};

/// The precondition of a change: the `If-Match` header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// No precondition.
    Any,
    /// The current entity tag must be one of these, quotes included. A weak tag (`W/"…"`) never matches.
    Tags(Vec<String>),
}

impl IfMatch {
    pub(crate) fn check(&self, etag: &str) -> Result<()> {
        match self {
            Self::Any => Ok(()),
            // The current tag is strong, so comparing the text is a strong comparison.
            Self::Tags(tags) if tags.iter().any(|tag| tag == etag) => Ok(()),
            Self::Tags(_) => Err(Error::conflict("the settings have changed since they were read")),
        }
    }
}
