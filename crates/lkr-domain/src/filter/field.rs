use std::{borrow::Cow, fmt};

use super::{Instant, ValueTest};
use crate::{Document, content_type};

/// A field of documents that expressions may name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FilterField {
    /// The id.
    DocId,
    /// Where the document comes from.
    Source,
    /// The title.
    Title,
    /// The category.
    Category,
    /// The language.
    Language,
    /// The space.
    Space,
    /// The name of the account that added the document.
    CreatedBy,
    /// The time of the first publication, to the microsecond.
    CreatedAt,
    /// The time of the last change, to the microsecond.
    UpdatedAt,
    /// The media type of the stored original, by its extension; empty without one.
    ContentType,
    /// The metadata with this key, reserved keys included.
    Metadata(String),
}

/// The value of a field of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue<'d> {
    /// A text; `None` if the document has no such field.
    Text(Option<Cow<'d, str>>),
    /// A time.
    Instant(Instant),
}

const METADATA: &str = "metadata.";

impl FilterField {
    /// The fields besides the metadata.
    pub const FIXED: [Self; 10] = [
        Self::DocId,
        Self::Source,
        Self::Title,
        Self::Category,
        Self::Language,
        Self::Space,
        Self::CreatedBy,
        Self::CreatedAt,
        Self::UpdatedAt,
        Self::ContentType,
    ];

    /// The field with this name: `metadata.` and a key, dots and all, or one of the others.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let metadata = name.strip_prefix(METADATA).map(|key| Self::Metadata(key.to_owned()));
        metadata.or_else(|| Self::FIXED.into_iter().find(|field| field.name() == name))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::DocId => "doc_id",
            Self::Source => "source",
            Self::Title => "title",
            Self::Category => "category",
            Self::Language => "language",
            Self::Space => "space",
            Self::CreatedBy => "created_by",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
            Self::ContentType => "content_type",
            Self::Metadata(key) => return Cow::Owned(format!("{METADATA}{key}")),
        })
    }

    /// Whether values are times, which are compared by instant alone.
    #[must_use]
    pub const fn is_time(&self) -> bool {
        matches!(self, Self::CreatedAt | Self::UpdatedAt)
    }

    /// The value of the field in a document.
    #[must_use]
    pub fn value_in<'d>(&self, document: &'d Document) -> FieldValue<'d> {
        FieldValue::Text(match self {
            Self::DocId => Some(Cow::Owned(document.doc_id.to_string())),
            Self::Source => Some(Cow::Borrowed(&document.source)),
            Self::Title => Some(Cow::Borrowed(&document.title)),
            Self::Category => Some(Cow::Borrowed(&document.category)),
            Self::Language => Some(Cow::Borrowed(&document.language)),
            Self::Space => Some(Cow::Borrowed(document.space.as_str())),
            Self::CreatedBy => Some(Cow::Borrowed(&document.created_by.name)),
            Self::CreatedAt => return FieldValue::Instant(Instant::from(document.created_at).to_micros()),
            Self::UpdatedAt => return FieldValue::Instant(Instant::from(document.updated_at).to_micros()),
            Self::ContentType => {
                document.original.as_ref().map(|original| Cow::Borrowed(content_type(&original.file_name)))
            }
            Self::Metadata(key) => metadata_value(document, key),
        })
    }
}

/// Reserved keys of the stored original take precedence, as in [`Document::all_metadata`].
fn metadata_value<'d>(document: &'d Document, key: &str) -> Option<Cow<'d, str>> {
    let reserved =
        document.original.iter().flat_map(crate::Original::metadata).find(|(known, _)| known == key);
    let reserved = reserved.map(|(_, value)| Cow::Owned(value));
    reserved.or_else(|| document.metadata.get(key).map(|value| Cow::Borrowed(value.as_str())))
}

impl fmt::Display for FilterField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FieldValue<'_> {
    /// Whether the value passes a test.
    #[must_use]
    pub fn passes(&self, test: &ValueTest) -> bool {
        match self {
            Self::Text(text) => test.passes(text.as_deref()),
            Self::Instant(at) => test.passes_instant(*at),
        }
    }

    /// The value as a text that passes the same tests; `None` if there is none.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => text.map(Cow::into_owned),
            Self::Instant(at) => Some(at.to_string()),
        }
    }
}
