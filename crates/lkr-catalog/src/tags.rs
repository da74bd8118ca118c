//! What points can be filtered by.

use lkr_domain::{Document, hex};
use lkr_vectors::Tags;
use sha2::{Digest, Sha256};

/// Longer keys and values stand in tags by their digest, because every point of a document carries all of them.
const LONGEST: usize = 64;

/// The tags of a document's points.
#[must_use]
pub fn tags_of(document: &Document) -> Tags {
    let own = [
        ("space", &document.space),
        ("category", &document.category),
        ("source", &document.source),
        ("language", &document.language),
    ];
    let own = own.into_iter().map(|(key, value)| tag(key, value));
    own.chain(document.all_metadata().iter().map(|(key, value)| metadata_tag(key, value))).collect()
}

/// The tag for a property of documents.
#[must_use]
pub fn tag(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), short(value))
}

/// The tag for an entry of the metadata.
#[must_use]
pub fn metadata_tag(key: &str, value: &str) -> (String, String) {
    tag(&format!("metadata.{}", short(key)), value)
}

/// The text itself, or what stands for it: no text that stands for itself is as long as that.
fn short(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_short_and_told_apart() {
        let (a, b) = ("é".repeat(4_096), "é".repeat(4_097));
        assert_eq!(metadata_tag("key", "value"), ("metadata.key".to_owned(), "value".to_owned()));
        assert_eq!(tag("source", &"x".repeat(64)).1, "x".repeat(64));
        let (key, value) = metadata_tag(&a, &b);
        assert_eq!((key.len(), value.len()), (80, 71));
        assert_ne!(metadata_tag(&a, "").0, metadata_tag(&b, "").0);
        // What a long text is stored as is no short text, so that nobody can ask for one by the other.
        assert_ne!(tag("source", &a), tag("source", &tag("source", &a).1));
    }
}
