use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{DocId, Layer, SpaceName};

/// Free-form metadata: string keys and string values.
pub type Metadata = BTreeMap<String, String>;

/// Metadata keys that only lkr sets; they describe the stored original.
pub const RESERVED_METADATA: [&str; 3] = ["raw_file_path", "original_filename", "original_size_bytes"];

/// The maximum length of a title and of a source, in code points.
pub const MAX_LINE_CHARS: usize = 4_096;

/// The maximum number of metadata keys of a document, without reserved keys.
pub const MAX_METADATA_KEYS: usize = 64;

/// The maximum size of title, source and metadata together, in bytes of JSON, because records are stored as JSON.
pub const MAX_PROPERTIES_BYTES: usize = 256 * 1024;

/// The maximum length of the text of a [`NewDocument`], in bytes of UTF-8.
pub const MAX_NEW_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// A document to be ingested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDocument {
    /// The text, with at least one character that is not white space.
    pub text: String,
    /// The title. If it is blank, the first heading or the first line is used.
    pub title: String,
    /// Where the document comes from, as described by the caller.
    pub source: String,
    /// Free-form metadata.
    pub metadata: Metadata,
}

/// The number of points of a document in each layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// L1 records: 1 for a live document.
    pub l1: u64,
    /// L2 nodes.
    pub l2: u64,
    /// L3 nodes.
    pub l3: u64,
    /// Chunks.
    pub chunks: u64,
}

impl Counts {
    /// The number of points in a layer.
    #[must_use]
    pub const fn of(self, layer: Layer) -> u64 {
        match layer {
            Layer::L1 => self.l1,
            Layer::L2 => self.l2,
            Layer::L3 => self.l3,
            Layer::Chunks => self.chunks,
        }
    }

    /// The sum over the layers.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.l1 + self.l2 + self.l3 + self.chunks
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.l1 += other.l1;
        self.l2 += other.l2;
        self.l3 += other.l3;
        self.chunks += other.chunks;
    }
}

/// A live document, as described by its L1 record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The id.
    pub doc_id: DocId,
    /// The space that contains the document.
    pub space: SpaceName,
    /// The revision whose points and text are live.
    pub revision: u64,
    /// The title.
    pub title: String,
    /// Where the document comes from.
    pub source: String,
    /// The summary.
    pub summary: String,
    /// The keywords, strongest first.
    pub keywords: Vec<String>,
    /// The name of the category; empty if there is none.
    pub category: String,
    /// The ISO 639-1 code of the language; empty if it is unknown.
    pub language: String,
    /// Free-form metadata.
    pub metadata: Metadata,
    /// The number of points by layer.
    pub counts: Counts,
    /// The length of the extracted text in code points.
    pub char_count: u32,
    /// The SHA-256 of the extracted text as UTF-8, in lower-case hexadecimal.
    pub content_sha256: String,
    /// The time of the first publication.
    pub created_at: OffsetDateTime,
    /// The time of the last change.
    pub updated_at: OffsetDateTime,
    /// The account that added the document.
    pub created_by: Creator,
    /// Whether a person chose the category. Such a category is never reclassified.
    pub category_by_hand: bool,
    /// The stored original, if the document was uploaded as a file and the file was stored.
    pub original: Option<Original>,
    /// The fingerprint of the text; `None` if an earlier version of lkr added the document.
    pub fingerprint: Option<Fingerprint>,
}

/// Identifies a text regardless of its layout, to find equal and near-duplicate texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The SHA-256 of the text in its normal form (NFC, runs of white space as one space, none at its ends), in
    /// lower-case hexadecimal.
    pub sha256: String,
    /// The 64-bit SimHash: texts that share most of their words differ in few bits.
    pub simhash: u64,
}

/// The rule by which a new document is a duplicate of an existing one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dedup {
    /// Never.
    None,
    /// If the normal forms of the texts are equal.
    #[default]
    Sha256,
    /// If the SimHash fingerprints of the texts differ in few bits.
    Simhash {
        /// The maximum number of differing bits, of 64.
        threshold: u32,
    },
}

impl Document {
    /// The metadata, plus the reserved keys of the stored original. Reserved keys take precedence.
    #[must_use]
    pub fn all_metadata(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        metadata.extend(self.original.iter().flat_map(Original::metadata));
        metadata
    }
}

/// An uploaded file, stored byte for byte so that it can be downloaded again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The path of the file, relative to the store of originals.
    pub path: String,
    /// The file name given by the client.
    pub file_name: String,
    /// The length in bytes.
    pub size_bytes: u64,
    /// The SHA-256 in lower-case hexadecimal; `None` if an earlier version of lkr stored the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Original {
    /// The [`RESERVED_METADATA`] that the original adds to its document's metadata.
    pub fn metadata(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let values = [self.path.clone(), self.file_name.clone(), self.size_bytes.to_string()];
        RESERVED_METADATA.into_iter().map(str::to_owned).zip(values)
    }
}

/// The account that created an object. If an account is deleted and created again, its name is the same but its id is
/// new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    /// The name, for display.
    #[serde(rename = "created_by")]
    pub name: String,
    /// The id; empty if there are no accounts or if it was not recorded.
    #[serde(rename = "creator_id", default)]
    pub id: String,
}

impl From<&str> for Creator {
    /// A creator with a name and no id.
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), id: String::new() }
    }
}

impl Creator {
    /// Whether the creator is the account with this id. A creator without an id is no account.
    #[must_use]
    pub fn is(&self, account_id: &str) -> bool {
        !self.id.is_empty() && self.id == account_id
    }
}
