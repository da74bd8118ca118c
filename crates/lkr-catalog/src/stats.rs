use std::collections::BTreeMap;

use lkr_domain::{Counts, Scope};
use lkr_state::Record;

use crate::{
    Catalog, Error, ErrorKind, Result, key,
    space_index::{self, SpaceEntry},
};

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

impl Stats {
    /// The number of documents without a category.
    #[must_use]
    pub fn uncategorized(&self) -> u64 {
        self.categories.get(UNCATEGORIZED).copied().unwrap_or(0)
    }
}

impl Stats {
    fn add(&mut self, key: &str, record: &Record) -> Result<()> {
        let damaged =
            || Error::new(ErrorKind::Corrupt, "read space index", format!("entry {key} is damaged"));
        let SpaceEntry { counts, category } = space_index::decode(&record.value).ok_or_else(damaged)?;
        self.counts += counts;
        let category = if category.is_empty() { UNCATEGORIZED.to_owned() } else { category };
        *self.categories.entry(category).or_default() += 1;
        Ok(())
    }
}

impl Catalog {
    /// Sums the counts of all live documents in the scope.
    pub async fn stats(&self, scope: &Scope) -> Result<Stats> {
        let mut stats = Stats::default();
        let prefixes = match scope {
            Scope::All => vec![key::SPACE_DOCUMENTS.to_owned()],
            Scope::Spaces(spaces) => spaces.iter().map(key::space_documents).collect(),
        };
        for prefix in prefixes {
            self.for_each_space_entry(&prefix, |key, record| stats.add(key, record)).await?;
        }
        Ok(stats)
    }
}
