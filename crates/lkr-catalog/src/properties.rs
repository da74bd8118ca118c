//! What may be said of a document: as much as fits into its record.

use std::fmt;

use lkr_domain::{MAX_METADATA_KEYS, MAX_PROPERTIES_BYTES, Metadata, RESERVED_METADATA};

/// What is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExceeded {
    /// So many metadata keys, those that are reserved not counted.
    Keys(usize),
    /// Title, source and metadata of so many bytes of JSON.
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

/// Refuses more than a record holds.
pub fn check_properties(title: &str, source: &str, metadata: &Metadata) -> Result<(), LimitExceeded> {
    let keys = metadata.keys().filter(|key| !RESERVED_METADATA.contains(&key.as_str())).count();
    if keys > MAX_METADATA_KEYS {
        return Err(LimitExceeded::Keys(keys));
    }
    let bytes = serde_json::to_vec(&(title, source, metadata)).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_PROPERTIES_BYTES { Err(LimitExceeded::Bytes(bytes)) } else { Ok(()) }
}
