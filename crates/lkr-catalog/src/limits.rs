//! The limits of a document: its record holds the properties, and a worker's memory its text.

use std::fmt;

use lkr_domain::{MAX_LINE_CHARS, MAX_METADATA_KEYS, MAX_PROPERTIES_BYTES, Metadata, RESERVED_METADATA};

/// The limit that a document exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// The text has no character other than white space.
    BlankText,
    /// The text has this many bytes of UTF-8, more than `limit`.
    Text {
        /// The bytes of the text.
        bytes: u64,
        /// The most that are allowed.
        limit: usize,
    },
    /// A one-line field has this many code points, more than [`MAX_LINE_CHARS`].
    Line {
        /// The name of the field, such as `title`.
        field: &'static str,
        /// The code points of its value.
        chars: usize,
    },
    /// The metadata has this many keys, not counting reserved ones, more than [`MAX_METADATA_KEYS`].
    Keys(usize),
    /// Title, source and metadata together take this many bytes of JSON, more than [`MAX_PROPERTIES_BYTES`].
    Bytes(usize),
}

impl LimitExceeded {
    /// Whether it is a size in bytes, for which HTTP has the status 413.
    #[must_use]
    pub const fn is_size(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Bytes(_))
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlankText => {
                f.write_str("text is blank: at least one character other than white space is required")
            }
            Self::Text { bytes, limit } => {
                write!(f, "text has {bytes} bytes of UTF-8, at most {limit} are allowed")
            }
            Self::Line { field, chars } => {
                write!(f, "{field} has {chars} characters, at most {MAX_LINE_CHARS} are allowed")
            }
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

/// Checks that a text is not blank and has at most `limit` bytes.
///
/// # Errors
/// `BlankText`, `Text`.
pub fn check_text(text: &str, limit: usize) -> Result<(), LimitExceeded> {
    if text.trim().is_empty() {
        return Err(LimitExceeded::BlankText);
    }
    check_text_bytes(text.len() as u64, limit)
}

/// Checks that a text of `bytes` has at most `limit`.
///
/// # Errors
/// `Text`.
pub fn check_text_bytes(bytes: u64, limit: usize) -> Result<(), LimitExceeded> {
    if bytes > limit as u64 { Err(LimitExceeded::Text { bytes, limit }) } else { Ok(()) }
}

/// Checks the length of a one-line field, such as a title or source.
///
/// # Errors
/// `Line`.
pub fn check_line(field: &'static str, value: &str) -> Result<(), LimitExceeded> {
    let chars = value.chars().count();
    if chars > MAX_LINE_CHARS { Err(LimitExceeded::Line { field, chars }) } else { Ok(()) }
}

/// Checks that the record of a document can hold its properties.
///
/// # Errors
/// `Keys`, `Bytes`.
pub fn check_properties(title: &str, source: &str, metadata: &Metadata) -> Result<(), LimitExceeded> {
    let keys = metadata.keys().filter(|key| !RESERVED_METADATA.contains(&key.as_str())).count();
    if keys > MAX_METADATA_KEYS {
        return Err(LimitExceeded::Keys(keys));
    }
    let bytes = serde_json::to_vec(&(title, source, metadata)).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_PROPERTIES_BYTES { Err(LimitExceeded::Bytes(bytes)) } else { Ok(()) }
}
