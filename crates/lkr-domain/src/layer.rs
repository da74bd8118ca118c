use std::fmt;

use serde::{Deserialize, Serialize};

/// A layer of the knowledge base, and the collection that holds its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Documents: summary and metadata.
    L1,
    /// Sections.
    L2,
    /// Subsections and passages.
    L3,
    /// Chunks.
    Chunks,
}

impl Layer {
    /// All layers, from the document down.
    pub const ALL: [Self; 4] = [Self::L1, Self::L2, Self::L3, Self::Chunks];

    /// The layer's name in answers, and its collection's: `l1`, `l2`, `l3`, `chunks`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1 => "l1",
            Self::L2 => "l2",
            Self::L3 => "l3",
            Self::Chunks => "chunks",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
