//! Checks of stored records.

use crate::{previous_embedder, records};

/// Whether a record can be decoded; its sealed secrets are not opened. `None` if the key is not of this crate.
#[must_use]
pub fn is_readable(key: &str, value: &[u8]) -> Option<bool> {
    match key {
        records::KEY => Some(records::decode(value).is_ok()),
        previous_embedder::KEY => Some(previous_embedder::is_readable(value)),
        _ => None,
    }
}
