use std::collections::BTreeMap;

use lkr_domain::Counts;
use lkr_state::ScanOrder;

use crate::{Catalog, Result, key, listing::decode_document};

/// Totals over all live documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live points by layer.
    pub counts: Counts,
    /// Live documents by category; those without one are under [`UNCATEGORIZED`].
    pub categories: BTreeMap<String, u64>,
}

/// The name under which documents without a category are counted.
pub const UNCATEGORIZED: &str = "uncategorized";

/// Records per page of the scan.
const PAGE: usize = 100;

impl Stats {
    /// The number of documents without a category.
    #[must_use]
    pub fn uncategorized(&self) -> u64 {
        self.categories.get(UNCATEGORIZED).copied().unwrap_or(0)
    }
}

impl Catalog {
    /// Sums the counts of all live documents.
    pub async fn stats(&self) -> Result<Stats> {
        let mut stats = Stats::default();
        let mut after: Option<String> = None;
        loop {
            let page = self.state.scan(key::DOCUMENTS, after.as_deref(), ScanOrder::Ascending, PAGE).await?;
            for (key, record) in &page {
                let document = decode_document(key, record)?;
                stats.counts += document.counts;
                let category = match document.category.as_str() {
                    "" => UNCATEGORIZED.to_owned(),
                    _ => document.category,
                };
                *stats.categories.entry(category).or_default() += 1;
            }
            if page.len() < PAGE {
                return Ok(stats);
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
        }
    }
}
