//! The stored form of a document's record.

use std::fmt;

use lkr_domain::{Counts, Creator, DocId, Document, Fingerprint, Metadata, Original, SpaceName};
use serde::{
    Deserialize, Deserializer as _, Serialize,
    de::{self, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Deserializer;
use time::OffsetDateTime;

use crate::{Error, Result};

/// The record, in version 1. A tag of serde and a flattened field would have the same form, but each value of the record would be
/// copied twice when it is decoded.
#[derive(Debug, Serialize, Deserialize)]
struct DocumentV1 {
    v: Version,
    space: String,
    revision: u64,
    title: String,
    source: String,
    summary: String,
    keywords: Vec<String>,
    category: String,
    language: String,
    metadata: Metadata,
    counts: Counts,
    char_count: u32,
    content_sha256: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    created_by: String,
    #[serde(default)]
    creator_id: String,
    #[serde(default)]
    category_by_hand: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<Original>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Fingerprint>,
}

/// The versions of the record.
#[derive(Debug, Serialize, Deserialize)]
enum Version {
    #[serde(rename = "1")]
    V1,
}

pub(crate) fn encode(document: &Document) -> Result<Vec<u8>> {
    let document = document.clone();
    let record = DocumentV1 {
        v: Version::V1,
        space: document.space.into(),
        revision: document.revision,
        title: document.title,
        source: document.source,
        summary: document.summary,
        keywords: document.keywords,
        category: document.category,
        language: document.language,
        metadata: document.metadata,
        counts: document.counts,
        char_count: document.char_count,
        content_sha256: document.content_sha256,
        created_at: document.created_at,
        updated_at: document.updated_at,
        created_by: document.created_by.name,
        creator_id: document.created_by.id,
        category_by_hand: document.category_by_hand,
        original: document.original,
        fingerprint: document.fingerprint,
    };
    serde_json::to_vec(&record).map_err(|e| Error::corrupt("write document record", e))
}

pub(crate) fn decode(doc_id: DocId, bytes: &[u8]) -> Result<Document> {
    let record: DocumentV1 = read(bytes)?;
    Ok(Document {
        doc_id,
        space: space_of(record.space)?,
        revision: record.revision,
        title: record.title,
        source: record.source,
        summary: record.summary,
        keywords: record.keywords,
        category: record.category,
        language: record.language,
        metadata: record.metadata,
        counts: record.counts,
        char_count: record.char_count,
        content_sha256: record.content_sha256,
        created_at: record.created_at,
        updated_at: record.updated_at,
        created_by: Creator { name: record.created_by, id: record.creator_id },
        category_by_hand: record.category_by_hand,
        original: record.original,
        fingerprint: record.fingerprint,
    })
}

fn read<'r, T: Deserialize<'r>>(bytes: &'r [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| Error::corrupt("read document record", e))
}

/// The fields that every version of the record has.
#[derive(Debug, Default)]
struct Head {
    version: Option<Version>,
    space: Option<String>,
    revision: Option<u64>,
}

/// The names of a record's fields.
#[derive(Debug, Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum FieldName {
    V,
    Space,
    Revision,
    #[serde(other)]
    Other,
}

/// Reads fields until the head is complete.
struct HeadReader<'h>(&'h mut Head);

impl<'r> Visitor<'r> for HeadReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document record")
    }

    fn visit_map<A: MapAccess<'r>>(self, mut record: A) -> std::result::Result<(), A::Error> {
        let Self(head) = self;
        while !matches!(head, Head { version: Some(_), space: Some(_), revision: Some(_) })
            && let Some(name) = record.next_key()?
        {
            match name {
                FieldName::V => head.version = Some(record.next_value()?),
                FieldName::Space => head.space = Some(record.next_value()?),
                FieldName::Revision => head.revision = Some(record.next_value()?),
                FieldName::Other => record.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

/// The space and the revision of a record, which are its first fields. The rest is not looked at: a search asks for the heads of
/// hundreds of records.
pub(crate) fn decode_head(bytes: &[u8]) -> Result<(SpaceName, u64)> {
    let mut head = Head::default();
    let read = Deserializer::from_slice(bytes).deserialize_map(HeadReader(&mut head));
    if let Head { version: Some(_), space: Some(space), revision: Some(revision) } = head {
        // That the reader ended before the record does is an error, too.
        return Ok((space_of(space)?, revision));
    }
    let why = read.err().unwrap_or_else(|| de::Error::custom("no version, space or revision"));
    Err(Error::corrupt("read document record", why))
}

/// What the text of a document's chunks is read with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DocumentTitle {
    /// The title.
    pub title: String,
    /// The ISO 639-1 code of the language; empty if it is unknown.
    pub language: String,
}

/// The title and the language of a record; the rest is not decoded.
pub(crate) fn decode_title(bytes: &[u8]) -> Result<DocumentTitle> {
    read(bytes)
}

/// The space of a stored record. Records of versions without spaces name none.
pub(crate) fn space_of(stored: String) -> Result<SpaceName> {
    if stored.is_empty() {
        return Ok(SpaceName::default());
    }
    stored.try_into().map_err(|e| Error::corrupt("read space of record", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"title": "\"space\"", "metadata": {"revision": "9"}, "v": "1", "space": "sp\u0061ce", "revision": 7}"#;

    #[test]
    fn head_of_a_record_is_its_space_and_revision() {
        let (space, revision) = decode_head(RECORD.as_bytes()).unwrap();
        assert_eq!((space.as_str(), revision), ("space", 7));
        let unnamed = RECORD.replace("sp\\u0061ce", "");
        assert_eq!(decode_head(unnamed.as_bytes()).unwrap(), (SpaceName::default(), 7));
    }

    #[test]
    fn damaged_record_has_no_head() {
        let unknown = RECORD.replace(r#""v": "1""#, r#""v": "2""#);
        let headless = RECORD.strip_prefix('{').unwrap();
        let cut_off = RECORD.strip_suffix(", \"revision\": 7}").unwrap();
        for record in [unknown.as_str(), headless, cut_off, r#"{"v": "1"}"#, ""] {
            assert_eq!(decode_head(record.as_bytes()).unwrap_err().kind(), crate::ErrorKind::Corrupt);
        }
    }
}
