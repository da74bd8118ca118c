use std::collections::BTreeMap;

use lkr::{Category, Stats};
use serde::{Deserialize, Serialize};
use time::Date;
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
    /// The number of documents by the day (UTC) on which they were added, for the last 90 days; present if
    /// `histograms=true`. Days without documents are left out. A document that was replaced keeps its day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    added_by_day: Option<BTreeMap<String, u64>>,
    /// The number of documents by the month (UTC) in which they were added; present if `histograms=true`. Months without
    /// documents are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    added_by_month: Option<BTreeMap<String, u64>>,
    /// The number of documents by their size, the smallest first; present if `histograms=true`. Sizes without documents are
    /// left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sizes: Option<Vec<SizeItem>>,
}

/// How many documents have a size.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SizeItem {
    /// The most chunks that they have: a power of two. They have more than half of it.
    max_chunks: u64,
    /// The number of documents.
    documents: u64,
}

/// The days that `added_by_day` has.
const DAYS: i64 = 90;

impl From<Stats> for KnowledgeStats {
    fn from(stats: Stats) -> Self {
        Self {
            uncategorized_count: stats.uncategorized(),
            documents_total: stats.counts.l1,
            collections: stats.counts.into(),
            categories: stats.categories,
            added_by_day: None,
            added_by_month: None,
            sizes: None,
        }
    }
}

impl KnowledgeStats {
    /// The statistics with their histograms, as they are shown on a day.
    pub(crate) fn with_histograms(stats: Stats, today: Date) -> Self {
        let mut added_by_month = BTreeMap::new();
        for (day, documents) in &stats.added {
            let month = format!("{:04}-{:02}", day.year(), u8::from(day.month()));
            *added_by_month.entry(month).or_default() += documents;
        }
        let is_recent = |day: &Date| (today - *day).whole_days() < DAYS;
        let recent = stats.added.iter().filter(|(day, _)| is_recent(day));
        let size = |(&max_chunks, &documents): (&u64, &u64)| SizeItem { max_chunks, documents };
        let added_by_day = recent.map(|(day, documents)| (day.to_string(), *documents)).collect();
        let sizes = stats.sizes.iter().map(size).collect();
        Self {
            added_by_day: Some(added_by_day),
            added_by_month: Some(added_by_month),
            sizes: Some(sizes),
            ..Self::from(stats)
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
