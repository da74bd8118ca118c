use std::collections::BTreeMap;

use lkr::{Category, Stats};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{documents::ByLayer, formats::SpaceText};

/// Counts of documents and points.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeStats {
    /// The number of live points by collection.
    collections: ByLayer,
    /// The number of documents by category; documents without one count as `uncategorized`.
    categories: BTreeMap<String, u64>,
    /// The number of documents without a category.
    uncategorized_count: u64,
    /// The number of documents.
    documents_total: u64,
}

impl From<Stats> for KnowledgeStats {
    fn from(stats: Stats) -> Self {
        Self {
            uncategorized_count: stats.uncategorized(),
            documents_total: stats.counts.l1,
            collections: stats.counts.into(),
            categories: stats.categories,
        }
    }
}

/// The categories that documents are classified into.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Categories {
    /// The categories, as the taxonomy lists them.
    pub(crate) categories: Vec<CategoryItem>,
    /// Their number.
    pub(crate) count: usize,
}

/// A category.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaxonomyCategory)]
pub(crate) struct CategoryItem {
    /// Its id.
    id: String,
    /// The value of `category` in documents.
    name: String,
    /// What belongs to it.
    description: String,
    /// Words that occur in its documents.
    keywords: Vec<String>,
    /// The id of the parent category; null if there is none.
    #[schema(required)]
    parent: Option<String>,
}

impl From<&Category> for CategoryItem {
    fn from(category: &Category) -> Self {
        let Category { id, name, description, keywords, parent } = category.clone();
        Self { id, name, description, keywords, parent }
    }
}

/// Which documents to classify again; all if it is absent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReclassifyInput {
    /// The space whose documents are classified.
    #[schema(value_type = Option<SpaceText>)]
    pub(crate) space: Option<String>,
}
