use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{DocId, Layer};

/// Free metadata: string keys to string values.
pub type Metadata = BTreeMap<String, String>;

/// The space that documents and points belong to until spaces can be chosen.
pub const SPACE_DEFAULT: &str = "default";

/// Metadata keys that only lkr itself sets: they name the stored original.
pub const RESERVED_METADATA: [&str; 3] = ["raw_file_path", "original_filename", "original_size_bytes"];

/// The longest title and the longest source, in code points.
pub const MAX_LINE_CHARS: usize = 4_096;

/// How many keys the metadata of a document may have, those that are reserved not counted.
pub const MAX_METADATA_KEYS: usize = 64;

/// The most that title, source and metadata may come to together, in bytes of JSON: that is how records are stored.
pub const MAX_PROPERTIES_BYTES: usize = 256 * 1024;

/// The longest text of a [`NewDocument`], in bytes of UTF-8.
pub const MAX_NEW_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// A document to be ingested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDocument {
    /// The text; at least one character is not white space.
    pub text: String,
    /// The title; when blank, the first heading or line takes its place.
    pub title: String,
    /// Where the document comes from, in the caller's own terms.
    pub source: String,
    /// Free metadata.
    pub metadata: Metadata,
}

/// How many points a document has in each layer.
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
    /// How many points the layer has.
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

/// A live document as its L1 record tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub doc_id: DocId,
    /// Its space: [`SPACE_DEFAULT`] for now.
    pub space: String,
    /// The revision whose points and text are live.
    pub revision: u64,
    /// Its title.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The summary.
    pub summary: String,
    /// The keywords, the strongest first.
    pub keywords: Vec<String>,
    /// The category's name; empty for none.
    pub category: String,
    /// The ISO 639-1 code of its language; empty where it cannot be told.
    pub language: String,
    /// Free metadata.
    pub metadata: Metadata,
    /// Its points by layer.
    pub counts: Counts,
    /// The length of the extracted text in code points.
    pub char_count: u32,
    /// The SHA-256 of the extracted text as UTF-8, in lower-case hexadecimal.
    pub content_sha256: String,
    /// When it was first published.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
    /// The account that brought it in.
    pub created_by: Creator,
    /// Whether a person chose the category: then it stays when documents are classified again.
    pub category_by_hand: bool,
    /// The stored original, where it came as a file that could be stored.
    pub original: Option<Original>,
    /// What its text is told by from others; none where an earlier version of lkr brought it in.
    pub fingerprint: Option<Fingerprint>,
}

/// What a text is told by from others, whatever its layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The SHA-256 of the text in its normal form (NFC, runs of white space as one space, none at its ends), in
    /// lower-case hexadecimal.
    pub sha256: String,
    /// 64 bits, few of which differ between texts that have most of their words in common.
    pub simhash: u64,
}

/// When a document is a duplicate of one that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dedup {
    /// Never.
    None,
    /// Where the texts are equal in their normal form.
    #[default]
    Sha256,
    /// Where the fingerprints of the texts are near.
    Simhash {
        /// In how many of 64 bits they may differ.
        threshold: u32,
    },
}

impl Document {
    /// The metadata with what names the stored original, which wins over all else.
    #[must_use]
    pub fn all_metadata(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        metadata.extend(self.original.iter().flat_map(Original::metadata));
        metadata
    }
}

/// A file as it was sent, stored for whoever wants it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// Where it is stored, relative to the store of originals.
    pub path: String,
    /// The name under which it was sent.
    pub file_name: String,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal; none where an earlier version of lkr stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Original {
    /// What it adds to the metadata of its document, under [`RESERVED_METADATA`].
    pub fn metadata(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let values = [self.path.clone(), self.file_name.clone(), self.size_bytes.to_string()];
        RESERVED_METADATA.into_iter().map(str::to_owned).zip(values)
    }
}

/// The account that made something. Names come back when an account is deleted and made again, ids do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    /// Its name, for people.
    #[serde(rename = "created_by")]
    pub name: String,
    /// Its id; empty where there are no accounts, or it was not noted.
    #[serde(rename = "creator_id", default)]
    pub id: String,
}

impl From<&str> for Creator {
    /// One that is known by its name alone.
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), id: String::new() }
    }
}

impl Creator {
    /// Whether the account of this id made it. What was made by nobody is nobody's.
    #[must_use]
    pub fn is(&self, account_id: &str) -> bool {
        !self.id.is_empty() && self.id == account_id
    }
}
