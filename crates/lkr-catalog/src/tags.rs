//! The tags of points, by which searches are filtered: the fields of the document, by their names.

use lkr_domain::{Document, filter::FilterField};
use lkr_vectors::Tags;

/// The tag of documents whose category a person chose. No filter names it; it is there to restore a record that was lost.
pub(crate) const BY_HAND: &str = "category_by_hand";

/// The tags of a document's points: every field that it has. A store keeps them once for all points of a document, so
/// long values are kept as they are.
#[must_use]
pub fn tags_of(document: &Document) -> Tags {
    let by_hand = document.category_by_hand.then(|| tag(BY_HAND, "true"));
    let metadata = document.all_metadata().into_keys().map(FilterField::Metadata);
    let fields = FilterField::FIXED.into_iter().chain(metadata);
    fields
        .filter_map(|field| Some((field.name().into_owned(), field.value_in(document).into_text()?)))
        .chain(by_hand)
        .collect()
}

/// Whether points with these tags may belong to the document: [`tags_of`], or those of earlier versions.
#[must_use]
pub fn has_tags_of(tags: &Tags, document: &Document) -> bool {
    let mut expected = tags_of(document);
    if *tags == expected {
        return true;
    }
    let differs_by_version = expected.remove(BY_HAND).is_some();
    differs_by_version && *tags == expected
}

/// The tag for a property of documents.
#[must_use]
pub fn tag(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// The tag for an entry of the metadata.
#[must_use]
pub fn metadata_tag(key: &str, value: &str) -> (String, String) {
    tag(&FilterField::Metadata(key.to_owned()).name(), value)
}

#[cfg(test)]
mod tests {
    use lkr_domain::{Counts, DocId, FilterExpr, Metadata, Original, PointId, SpaceName};
    use lkr_vectors::{Filter, PointOrigin};
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    fn document() -> Document {
        Document {
            doc_id: DocId::from_bytes([0x12; 16]),
            space: SpaceName::default(),
            revision: 1,
            title: "é".repeat(4_096),
            source: "/reports/2026/a.pdf".to_owned(),
            summary: String::new(),
            keywords: Vec::new(),
            category: String::new(),
            language: "de".to_owned(),
            metadata: Metadata::from([
                ("price".to_owned(), "12.50".to_owned()),
                ("k".repeat(300), "x".to_owned()),
            ]),
            counts: Counts::default(),
            char_count: 1,
            content_sha256: String::new(),
            created_at: datetime!(2026-01-02 03:04:05.123456789 UTC),
            updated_at: datetime!(2026-02-02 03:04:05 UTC),
            created_by: "alice".into(),
            category_by_hand: false,
            original: Some(Original {
                path: "2026/01/x_a.pdf".to_owned(),
                file_name: "a.pdf".to_owned(),
                size_bytes: 1_234,
                sha256: None,
            }),
            fingerprint: None,
        }
    }

    #[test]
    fn tags_of_earlier_versions_belong_to_the_document_and_others_do_not() {
        let by_hand = Document { category_by_hand: true, ..document() };
        let earlier = tags_of(&document());
        assert_ne!(tags_of(&by_hand), earlier);
        assert!(has_tags_of(&tags_of(&by_hand), &by_hand) && has_tags_of(&earlier, &by_hand));
        assert!(has_tags_of(&earlier, &document()) && !has_tags_of(&tags_of(&by_hand), &document()));
        assert!(!has_tags_of(&Tags::new(), &by_hand));
    }

    #[test]
    fn filters_over_tags_match_like_expressions_over_the_document() {
        let document = document();
        let origin = PointOrigin { doc_id: document.doc_id, revision: 1, ordinal: 0, l2: None, l3: None };
        let tags = tags_of(&document);
        let long = "k".repeat(300);
        for (json, expected) in [
            (json!({"field": "title", "gt": "é".repeat(4_095)}), true),
            (json!({"field": "title", "eq": "é".repeat(4_096)}), true),
            (json!({"field": "title", "prefix": "é".repeat(4_097)}), false),
            (json!({"field": "doc_id", "eq": document.doc_id.to_string()}), true),
            (json!({"field": "created_at", "eq": "2026-01-02T03:04:05.123456Z"}), true),
            (json!({"field": "created_at", "lt": "2026-01-02"}), false),
            (json!({"field": "updated_at", "gte": "2026-02-02", "lt": "2026-02-03"}), true),
            (json!({"field": "created_by", "eq": "alice"}), true),
            (json!({"field": "content_type", "prefix": "application/"}), true),
            (json!({"field": "space", "in": ["default"]}), true),
            (json!({"field": "category", "exists": false}), true),
            (json!({"field": "metadata.price", "gte": 12.5, "lt": 13}), true),
            (json!({"field": "metadata.original_size_bytes", "lt": 1_000}), false),
            (json!({"field": format!("metadata.{long}"), "eq": "x"}), true),
            (
                json!({"not": {"or": [{"field": "language", "eq": "en"}, {"field": "title", "exists": false}]}}),
                true,
            ),
        ] {
            let expr = FilterExpr::parse("where", &json).unwrap();
            assert_eq!(expr.matches(&document), expected, "{json}");
            let filter = Filter::from(&expr);
            assert_eq!(filter.matches(PointId::from_bytes([1; 16]), &origin, &tags), expected, "{json}");
        }
    }
}
