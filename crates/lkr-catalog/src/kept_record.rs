//! What a document's L1 point keeps of its record, and the record that is made from it if the record is lost. The tags hold
//! what searches filter by; the payload holds the rest.

use lkr_domain::{
    Counts, Creator, Document, Fingerprint, Metadata, Original, RESERVED_METADATA, SpaceName,
    filter::{FilterField, Instant},
};
use lkr_vectors::{Point, Tags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{Error, ErrorKind, L1Content, PointSource, Result, l1_of, tags::BY_HAND};

/// The key in an L1 payload under which the record is kept. Payloads of earlier versions lack it.
const KEPT: &str = "record";

/// What an L1 payload keeps of the record besides title and summary. None of it changes while the revision is live, except
/// the time of the last change, which the tags also have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// The keywords, strongest first.
    pub keywords: Vec<String>,
    /// The id of the account that added the document.
    pub creator_id: String,
    /// The time of the first publication.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The time at which the revision was made.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// The number of points by layer.
    pub counts: Counts,
    /// The SHA-256 of the text.
    pub content_sha256: String,
    /// The SHA-256 of the stored original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_sha256: Option<String>,
}

/// What the text and the points of a document tell about its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredContent {
    /// The number of points by layer.
    pub counts: Counts,
    /// The length of the text in code points.
    pub char_count: u32,
    /// The SHA-256 of the text.
    pub content_sha256: String,
    /// The fingerprint of the text.
    pub fingerprint: Fingerprint,
}

/// Adds the record of a document to its L1 point.
pub fn keep_record(l1: &mut PointSource, document: &Document) {
    let kept = KeptRecord {
        keywords: document.keywords.clone(),
        creator_id: document.created_by.id.clone(),
        created_at: document.created_at,
        updated_at: document.updated_at,
        counts: document.counts,
        content_sha256: document.content_sha256.clone(),
        original_sha256: document.original.as_ref().and_then(|original| original.sha256.clone()),
    };
    if let (Some(payload), Ok(kept)) = (l1.payload.as_object_mut(), serde_json::to_value(kept)) {
        payload.insert(KEPT.to_owned(), kept);
    }
}

/// What an L1 payload keeps of the record; `None` if an earlier version wrote it.
#[must_use]
pub fn kept_record(payload: &Value) -> Option<KeptRecord> {
    KeptRecord::deserialize(payload.get(KEPT)?).ok()
}

/// The record of a document, from its L1 point and its content. A point of an earlier version gives neither keywords nor the
/// id of the creator nor the digest of the original, and times to the microsecond.
///
/// # Errors
/// `Corrupt` if the payload or a tag that every document has cannot be read.
pub fn restore_document(l1: &Point, content: RestoredContent) -> Result<Document> {
    let RestoredContent { counts, char_count, content_sha256, fingerprint } = content;
    let kept = kept_record(&l1.payload);
    let L1Content { title, summary, .. } = l1_of(l1.payload.clone())?;
    let exact = |field, kept: Option<OffsetDateTime>| exact_time(&l1.tags, &field, kept);
    let base = Document {
        doc_id: l1.origin.doc_id,
        space: SpaceName::default(),
        revision: l1.origin.revision,
        title,
        source: String::new(),
        summary,
        keywords: kept.as_ref().map(|kept| kept.keywords.clone()).unwrap_or_default(),
        category: String::new(),
        language: value(&l1.tags, &FilterField::Language)?.to_owned(),
        metadata: Metadata::new(),
        counts,
        char_count,
        content_sha256,
        created_at: exact(FilterField::CreatedAt, kept.as_ref().map(|kept| kept.created_at))?,
        updated_at: exact(FilterField::UpdatedAt, kept.as_ref().map(|kept| kept.updated_at))?,
        created_by: Creator {
            name: value(&l1.tags, &FilterField::CreatedBy)?.to_owned(),
            id: kept.as_ref().map(|kept| kept.creator_id.clone()).unwrap_or_default(),
        },
        category_by_hand: false,
        original: original_of(&l1.tags, kept.and_then(|kept| kept.original_sha256))?,
        fingerprint: Some(fingerprint),
    };
    adopt_tags(&base, &l1.tags)
}

/// The document with what changes of its properties set: what a record that is older than the tags lacks.
///
/// # Errors
/// `Corrupt` if a tag that every document has is missing or cannot be read.
pub fn adopt_tags(document: &Document, tags: &Tags) -> Result<Document> {
    let space = value(tags, &FilterField::Space)?;
    let space = SpaceName::new(space).ok_or_else(|| damaged(&FilterField::Space))?;
    let category = value(tags, &FilterField::Category)?.to_owned();
    let by_hand = tags.contains_key(BY_HAND) || document.category_by_hand && document.category == category;
    Ok(Document {
        space,
        title: value(tags, &FilterField::Title)?.to_owned(),
        source: value(tags, &FilterField::Source)?.to_owned(),
        category,
        category_by_hand: by_hand,
        metadata: metadata_of(tags),
        updated_at: exact_time(tags, &FilterField::UpdatedAt, Some(document.updated_at))?,
        ..document.clone()
    })
}

/// The time of the last change by the tags of a point; `None` if it cannot be read.
#[must_use]
pub fn updated_by(tags: &Tags) -> Option<Instant> {
    Instant::parse(tags.get(&*FilterField::UpdatedAt.name())?)
}

fn value<'t>(tags: &'t Tags, field: &FilterField) -> Result<&'t str> {
    tags.get(&*field.name()).map(String::as_str).ok_or_else(|| damaged(field))
}

/// The time in a tag, which has microseconds; the kept time if it is the same to the microsecond.
fn exact_time(tags: &Tags, field: &FilterField, kept: Option<OffsetDateTime>) -> Result<OffsetDateTime> {
    let text = value(tags, field)?;
    let same = kept.filter(|kept| Instant::from(*kept).to_micros().to_string() == text);
    same.map_or_else(|| OffsetDateTime::parse(text, &Rfc3339).map_err(|_| damaged(field)), Ok)
}

/// The metadata without the keys that the original adds.
fn metadata_of(tags: &Tags) -> Metadata {
    let has_original = tags.contains_key(&*FilterField::ContentType.name());
    let entries = tags.iter().filter_map(|(name, value)| match FilterField::from_name(name) {
        Some(FilterField::Metadata(key)) => Some((key, value.clone())),
        _ => None,
    });
    entries.filter(|(key, _)| !has_original || !RESERVED_METADATA.contains(&key.as_str())).collect()
}

fn original_of(tags: &Tags, sha256: Option<String>) -> Result<Option<Original>> {
    if !tags.contains_key(&*FilterField::ContentType.name()) {
        return Ok(None);
    }
    let reserved = |key: &str| {
        let field = FilterField::Metadata(key.to_owned());
        value(tags, &field).map(str::to_owned)
    };
    let [path, file_name, size_bytes] = RESERVED_METADATA;
    let size_bytes = reserved(size_bytes)?.parse().map_err(|e| Error::corrupt("restore document", e))?;
    Ok(Some(Original { path: reserved(path)?, file_name: reserved(file_name)?, size_bytes, sha256 }))
}

fn damaged(field: &FilterField) -> Error {
    let reason = format!("the tag {field} of its point is missing or damaged");
    Error::new(ErrorKind::Corrupt, "restore document", reason)
}

#[cfg(test)]
mod tests {
    use lkr_domain::{DocId, Layer, PointId, SparseVector};
    use lkr_vectors::PointOrigin;
    use serde_json::json;
    use time::macros::datetime;

    use super::*;
    use crate::tags_of;

    fn document(original: bool) -> Document {
        let reserved = ("raw_file_path".to_owned(), "a client's".to_owned());
        let plain = ("price.in €".to_owned(), String::new());
        Document {
            doc_id: DocId::from_bytes([0x12; 16]),
            space: SpaceName::new("papers").unwrap(),
            revision: 7,
            title: "a title".to_owned(),
            source: "é".repeat(4_096),
            summary: "a summary".to_owned(),
            keywords: vec!["b".to_owned(), "a".to_owned()],
            category: "science".to_owned(),
            language: "de".to_owned(),
            metadata: if original { [plain].into() } else { [plain, reserved].into() },
            counts: Counts { l1: 1, l2: 2, l3: 3, chunks: 4 },
            char_count: 9,
            content_sha256: "0".repeat(64),
            created_at: datetime!(2026-01-02 03:04:05.123456789 UTC),
            updated_at: datetime!(2026-02-02 03:04:05.000000001 UTC),
            created_by: Creator { name: "alice".to_owned(), id: "17".to_owned() },
            category_by_hand: true,
            original: original.then(|| Original {
                path: "2026/01/x_a.pdf".to_owned(),
                file_name: "a.pdf".to_owned(),
                size_bytes: 1_234,
                sha256: Some("f".repeat(64)),
            }),
            fingerprint: Some(Fingerprint { sha256: "1".repeat(64), simhash: 5 }),
        }
    }

    fn content(document: &Document) -> RestoredContent {
        RestoredContent {
            counts: document.counts,
            char_count: document.char_count,
            content_sha256: document.content_sha256.clone(),
            fingerprint: document.fingerprint.clone().unwrap(),
        }
    }

    fn l1_point(document: &Document, is_kept: bool) -> Point {
        let Document { doc_id, revision, .. } = *document;
        let mut source = PointSource {
            layer: Layer::L1,
            id: PointId::derive(doc_id, revision, Layer::L1, 0),
            origin: PointOrigin { doc_id, revision, ordinal: 0, l2: None, l3: None },
            payload: json!({ "title": document.title, "summary": document.summary }),
        };
        if is_kept {
            keep_record(&mut source, document);
        }
        source.point(&tags_of(document), SparseVector::default(), None)
    }

    #[test]
    fn restored_document_equals_the_one_that_was_kept() {
        for document in [document(true), document(false)] {
            let restored = restore_document(&l1_point(&document, true), content(&document));
            assert_eq!(restored.unwrap(), document);
        }
    }

    #[test]
    fn document_of_an_earlier_version_lacks_what_its_tags_do_not_hold() {
        let before = document(true);
        let restored = restore_document(&l1_point(&before, false), content(&before)).unwrap();
        let mut expected = before;
        expected.keywords.clear();
        expected.created_by.id.clear();
        expected.original.as_mut().unwrap().sha256 = None;
        expected.created_at = datetime!(2026-01-02 03:04:05.123456 UTC);
        expected.updated_at = datetime!(2026-02-02 03:04:05 UTC);
        assert_eq!(restored, expected);
    }

    #[test]
    fn tags_that_were_changed_later_win_over_what_was_kept() {
        let before = document(true);
        let mut after = before.clone();
        after.title = "another".to_owned();
        after.category = String::new();
        after.category_by_hand = false;
        after.metadata = [("k".to_owned(), "v".to_owned())].into();
        after.updated_at = datetime!(2026-03-03 01:02:03.5 UTC);
        let mut point = l1_point(&before, true);
        point.tags = tags_of(&after);
        assert_eq!(restore_document(&point, content(&before)).unwrap(), after);
        assert_eq!(adopt_tags(&before, &point.tags).unwrap(), after);
        assert!(updated_by(&point.tags) > updated_by(&tags_of(&before)));
    }

    #[test]
    fn point_without_a_tag_of_every_document_is_damaged() {
        let document = document(true);
        for name in ["space", "title", "created_at", "metadata.original_size_bytes"] {
            let mut point = l1_point(&document, true);
            point.tags.remove(name);
            let error = restore_document(&point, content(&document)).unwrap_err();
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}
