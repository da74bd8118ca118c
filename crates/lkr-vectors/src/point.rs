use std::{collections::BTreeMap, fmt};

use lkr_domain::{DocId, PointId, SparseVector};
use serde::{Deserialize, Serialize};

/// The name of a collection, or of an alias of one: 1 to 64 of `a-z 0-9 - _ .`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Collection(String);

impl Collection {
    /// The collection of that name; `None` where the name is none.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let fits = (1..=64).contains(&name.len())
            && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'));
        fits.then_some(Self(name))
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

/// What a collection holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionSpec {
    /// The collection's own name, never an alias.
    pub collection: Collection,
    /// The dense vectors, compared by cosine; `None` for a collection without.
    pub dense: Option<DenseSpec>,
}

/// The dense vectors of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenseSpec {
    /// The id of the model that made them: vectors of two models never meet.
    pub model: String,
    /// The number of dimensions.
    pub dims: usize,
}

/// Filterable values of a point by key, such as `category`, `source`, `language`, `metadata.kind`. Every key can be
/// filtered by; the values are compared whole.
pub type Tags = BTreeMap<String, String>;

/// Where a point comes from. It travels with every hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PointOrigin {
    /// The document.
    pub doc_id: DocId,
    /// The revision of the document that the point belongs to.
    pub revision: u64,
    /// The position within the layer of the document.
    pub ordinal: u32,
    /// The section that an L3 node or a chunk lies in.
    pub l2: Option<PointId>,
    /// The passage that a chunk lies in.
    pub l3: Option<PointId>,
}

/// A point to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Its id; an existing point of that id is replaced.
    pub id: PointId,
    /// Where it comes from.
    pub origin: PointOrigin,
    /// What it can be filtered by.
    pub tags: Tags,
    /// The dense vector: of the collection's dimensions, finite and of length 1. `None` where there is none.
    pub dense: Option<Vec<f32>>,
    /// The sparse vector, without IDF: the store multiplies that in when it is asked.
    pub sparse: SparseVector,
    /// What the caller keeps with it. The store does not look inside.
    pub payload: serde_json::Value,
}

/// A cosine or a sparse score, and whose it is.
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
    fn names_are_checked() {
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
