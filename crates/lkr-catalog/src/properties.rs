//! The limits of a document's title, source and metadata, which must fit into its record.

use std::fmt;

use lkr_domain::{MAX_METADATA_KEYS, MAX_PROPERTIES_BYTES, Metadata, RESERVED_METADATA};

/// A limit that is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExceeded {
    /// The number of metadata keys, without reserved ones.
    Keys(usize),
    /// The bytes of title, source and metadata as JSON.
    Bytes(usize),
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(keys) => {
                write!(f, "metadata has {keys} keys, at most {MAX_METADATA_KEYS} are allowed")
            }
            Self::Bytes(bytes) => write!(
                f,
                "title, source and metadata have {bytes} bytes of JSON, at most {MAX_PROPERTIES_BYTES} are allowed"
            ),
        }
    }
}

impl std::error::Error for LimitExceeded {}

/// Checks title, source and metadata against the limits of a record.
///
/// # Errors
/// The limit that is exceeded.
pub fn check_properties(title: &str, source: &str, metadata: &Metadata) -> Result<(), LimitExceeded> {
    let keys = metadata.keys().filter(|key| !RESERVED_METADATA.contains(&key.as_str())).count();
    if keys > MAX_METADATA_KEYS {
        return Err(LimitExceeded::Keys(keys));
    }
    let bytes = serde_json::to_vec(&(title, source, metadata)).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_PROPERTIES_BYTES { Err(LimitExceeded::Bytes(bytes)) } else { Ok(()) }
}
