use std::fmt;

use serde::{Deserialize, Serialize};

/// A layer of the knowledge base. Each layer has its own collection of points.
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
    /// All layers, from documents down to chunks.
    pub const ALL: [Self; 4] = [Self::L1, Self::L2, Self::L3, Self::Chunks];

    /// The name of the layer in responses and of its collection: `l1`, `l2`, `l3` or `chunks`.
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
