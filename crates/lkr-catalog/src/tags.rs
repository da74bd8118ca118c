//! The tags of points, by which searches are filtered.

use lkr_domain::{Document, hex};
use lkr_vectors::Tags;
use sha2::{Digest, Sha256};

/// The longest key or value in bytes that a tag contains. A longer one is replaced by its digest, because every point
/// of a document carries all tags. Chosen, not measured.
const MAX_TAG_BYTES: usize = 64;

/// The tags of a document's points.
#[must_use]
pub fn tags_of(document: &Document) -> Tags {
    let properties = [
        ("space", document.space.as_str()),
        ("category", &document.category),
        ("source", &document.source),
        ("language", &document.language),
    ];
    let properties = properties.into_iter().map(|(key, value)| tag(key, value));
    properties.chain(document.all_metadata().iter().map(|(key, value)| metadata_tag(key, value))).collect()
}

/// The tag for a property of documents.
#[must_use]
pub fn tag(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), shortened(value))
}

/// The tag for an entry of the metadata.
#[must_use]
pub fn metadata_tag(key: &str, value: &str) -> (String, String) {
    tag(&format!("metadata.{}", shortened(key)), value)
}

/// The text, or its digest if it is too long. The form of the digest is longer than every text that is kept, so the two
/// never collide.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_TAG_BYTES {
        return text.to_owned();
    }
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_become_distinct_digests() {
        let (a, b) = ("é".repeat(4_096), "é".repeat(4_097));
        assert_eq!(metadata_tag("key", "value"), ("metadata.key".to_owned(), "value".to_owned()));
        assert_eq!(tag("source", &"x".repeat(64)).1, "x".repeat(64));
        let (key, value) = metadata_tag(&a, &b);
        assert_eq!((key.len(), value.len()), (80, 71));
        assert_ne!(metadata_tag(&a, "").0, metadata_tag(&b, "").0);
        // The digest of a long text is not a short text, so a filter for the one never matches the other.
        assert_ne!(tag("source", &a), tag("source", &tag("source", &a).1));
    }
}
