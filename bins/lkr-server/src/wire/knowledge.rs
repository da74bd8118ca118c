use std::collections::BTreeMap;

use lkr::Stats;
use serde::Serialize;
use utoipa::ToSchema;

use super::documents::ByLayer;

/// How much there is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeStats {
    /// Live points by collection.
    collections: ByLayer,
    /// Documents by category; those without one under `uncategorized`.
    categories: BTreeMap<String, u64>,
    uncategorized_count: u64,
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
