use std::collections::BTreeMap;

use lkr_domain::{Counts, DocId, Scope};
use lkr_state::Record;
use time::{Date, OffsetDateTime};

use crate::{
    Catalog, Error, ErrorKind, ListOrder, Result, key,
    merged_ids::IdRanges,
    space_index::{self, SpaceEntry},
};

/// Totals over all live documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live points by layer.
    pub counts: Counts,
    /// Live documents by category; those without one are under [`UNCATEGORIZED`].
    pub categories: BTreeMap<String, u64>,
    /// Live documents by the day (UTC) on which they were added. A replacement keeps the day.
    pub added: BTreeMap<Date, u64>,
    /// Live documents by size: the smallest power of two that is not below the number of chunks.
    pub sizes: BTreeMap<u64, u64>,
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

/// Entries of the indexes that are read at a time.
const BATCH: usize = 1_000;

impl Stats {
    fn add(&mut self, doc_id: DocId, record: &Record) -> Result<()> {
        let damaged = || {
            let message = format!("the entry of {doc_id} is damaged");
            Error::new(ErrorKind::Corrupt, "read space index", message)
        };
        let SpaceEntry { counts, category } = space_index::decode(&record.value).ok_or_else(damaged)?;
        // The id of a document begins with the time at which it was accepted.
        if let Some(day) = day_of(doc_id) {
            *self.added.entry(day).or_default() += 1;
        }
        *self.sizes.entry(counts.chunks.next_power_of_two()).or_default() += 1;
        self.counts += counts;
        let category = if category.is_empty() { UNCATEGORIZED.to_owned() } else { category };
        *self.categories.entry(category).or_default() += 1;
        Ok(())
    }
}

impl Catalog {
    /// Sums the counts of all live documents in the scope. A document that moves between its spaces meanwhile counts
    /// once.
    pub async fn stats(&self, scope: &Scope) -> Result<Stats> {
        let order = ListOrder::OldestFirst;
        let mut entries = match scope {
            Scope::All => IdRanges::of_all(self, order, key::SPACE_DOCUMENTS, BATCH).await?,
            Scope::Spaces(spaces) => {
                let prefixes = spaces.iter().map(key::space_documents);
                IdRanges::new(self, order, prefixes, None, BATCH)
            }
        };
        let mut stats = Stats::default();
        loop {
            let range = entries.next().await?;
            if range.is_empty() {
                return Ok(stats);
            }
            range.iter().try_for_each(|(doc_id, record)| stats.add(*doc_id, record))?;
        }
    }
}

/// The day of a document's id; `None` beyond all years.
fn day_of(doc_id: DocId) -> Option<Date> {
    let seconds = i64::try_from(doc_id.unix_ms() / 1_000).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok().map(OffsetDateTime::date)
}
