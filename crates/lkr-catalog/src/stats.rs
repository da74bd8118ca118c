use std::collections::BTreeMap;

use lkr_domain::Counts;
use lkr_state::ScanOrder;

use crate::{Catalog, Result, key, listing::decode_document};

/// How much there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live points by layer.
    pub counts: Counts,
    /// Live documents by category; the empty category under `uncategorized`.
    pub categories: BTreeMap<String, u64>,
}

/// The name that documents without a category are counted under.
pub const UNCATEGORIZED: &str = "uncategorized";

/// How many records are read at a time.
const PAGE: usize = 100;

impl Stats {
    /// How many documents have no category.
    #[must_use]
    pub fn uncategorized(&self) -> u64 {
        self.categories.get(UNCATEGORIZED).copied().unwrap_or(0)
    }
}

impl Catalog {
    /// Counts what is visible: the sums over the records of all live documents.
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
