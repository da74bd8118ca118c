use std::fmt;

use lkr_domain::{DocId, PointId, Scope, SparseVector};
use serde::{Deserialize, Serialize};

use crate::Tags;

/// The name of a collection or of an alias: 1 to 64 characters of `a-z 0-9 - _ .`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Collection(String);

impl Collection {
    /// Validates a name; `None` if it is invalid.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let is_valid = (1..=64).contains(&name.len())
            && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'));
        is_valid.then_some(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl From<lkr_domain::Layer> for Collection {
    /// The alias that searches use for a layer.
    fn from(layer: lkr_domain::Layer) -> Self {
        Self(layer.name().to_owned())
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the points of a collection look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionSpec {
    /// The name of the collection, never an alias.
    pub collection: Collection,
    /// The dense vectors, compared by cosine; `None` if the collection has none.
    pub dense: Option<DenseSpec>,
}

/// The dense vectors of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenseSpec {
    /// The id of the model that computed them. Vectors of different models are never compared.
    pub model: String,
    /// The number of dimensions.
    pub dims: usize,
}

/// The key of the tag that names a point's space. Points without it are in no space: only [`Scope::All`] contains them.
///
/// [`Scope::All`]: lkr_domain::Scope::All
pub const SPACE_TAG: &str = "space";

/// Where a point comes from. Every hit carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PointOrigin {
    /// The document.
    pub doc_id: DocId,
    /// The revision of the document that the point belongs to.
    pub revision: u64,
    /// The position within the layer of the document.
    pub ordinal: u32,
    /// The section that contains an L3 node or a chunk.
    pub l2: Option<PointId>,
    /// The passage that contains a chunk.
    pub l3: Option<PointId>,
}

/// Whether a point with these tags is in the scope.
#[must_use]
pub fn is_in_scope(tags: &Tags, scope: &Scope) -> bool {
    match scope {
        Scope::All => true,
        Scope::Spaces(spaces) => {
            tags.get(SPACE_TAG).is_some_and(|space| spaces.iter().any(|name| name.as_str() == space))
        }
    }
}

/// A point to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The id; an existing point with the same id is replaced.
    pub id: PointId,
    /// Where it comes from.
    pub origin: PointOrigin,
    /// The values to filter by.
    pub tags: Tags,
    /// The dense vector: finite, of length 1, with the collection's number of dimensions. `None` if the point has none.
    /// A store may round its numbers to half precision, or scale it to length 1 again: it can come back with a difference of
    /// up to 2⁻¹¹ of its length.
    pub dense: Option<Vec<f32>>,
    /// The sparse vector without IDF; the store applies IDF at query time.
    pub sparse: SparseVector,
    /// Data of the caller. The store does not interpret it.
    pub payload: serde_json::Value,
}

/// A point that a query found, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The point.
    pub id: PointId,
    /// Where it comes from.
    pub origin: PointOrigin,
    /// Dense: the cosine. Sparse: `Σ idf(t) · q(t) · w(t)`.
    pub score: f32,
}

#[cfg(test)]
mod tests {
    use lkr_domain::Layer;

    use super::Collection;

    #[test]
    fn collection_name_outside_the_allowed_characters_or_length_is_refused() {
        for name in ["a", "l1", "chunks-2026.01_b", &"z".repeat(64)] {
            assert_eq!(Collection::new(name).unwrap().name(), name);
        }
        for name in ["", "A", "a b", "a/b", "é", "a\0", &"z".repeat(65)] {
            assert_eq!(Collection::new(name), None, "{name:?}");
        }
        for layer in Layer::ALL {
            assert_eq!(Collection::new(layer.name()), Some(Collection::from(layer)));
        }
    }
}
