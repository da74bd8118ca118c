//! What the tests of whole catalogs share.

use lkr_domain::{Counts, DocId, Document, SpaceName};
use time::OffsetDateTime;

/// A document without a title, a source, a category and a fingerprint.
pub(crate) fn document(doc_id: DocId, space: SpaceName) -> Document {
    Document {
        doc_id,
        space,
        revision: 1,
        title: String::new(),
        source: String::new(),
        summary: String::new(),
        keywords: Vec::new(),
        category: String::new(),
        language: "en".to_owned(),
        metadata: Default::default(),
        counts: Counts { l1: 1, l2: 2, l3: 3, chunks: 4 },
        char_count: 10,
        content_sha256: String::new(),
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
        created_by: "tester".into(),
        category_by_hand: false,
        original: None,
        fingerprint: None,
    }
}
