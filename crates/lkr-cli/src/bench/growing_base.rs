//! A knowledge base that grows by copies of its documents, for measurements at several sizes.

use std::{collections::HashSet, path::PathBuf};

use anyhow::Result;
use lkr::Scope;

use crate::{
    bench::{
        copies::Copies,
        material::{Material, at_least_one, read_documents},
    },
    collection::{Gold, Query},
    exit::usage,
    import::import_missing,
    local_kb::LocalKnowledgeBase,
};

/// The number of queries that warm up the caches before a measurement.
pub(super) const WARM_UP_QUERIES: usize = 10;

/// The arguments of `lkr bench layers` and `lkr bench growth`.
#[derive(Debug, clap::Args)]
pub(super) struct GrowingBase {
    /// Keep the knowledge base in this folder and reuse its documents.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: PathBuf,
    #[command(flatten)]
    pub(super) material: Material,
    /// Measure at these numbers of chunks, in growing order, with commas between them. Copies of documents, with slightly
    /// different texts and vectors, are added to reach them.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    pub(super) chunks: Vec<u64>,
    /// Run this many queries.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    queries: usize,
}

impl GrowingBase {
    /// The documents with their copies, and the queries.
    pub(super) fn read(&self) -> Result<(Copies, Vec<Query>)> {
        let inputs = read_documents(&self.material.dir, None)?;
        if !self.chunks.is_sorted() {
            return Err(usage("the numbers of chunks must be in growing order"));
        }
        let mut queries = Gold::read(&self.material.dir, None)?.queries;
        queries.truncate(self.queries);
        Ok((Copies::of(inputs), queries))
    }
}

/// The number of chunks.
pub(super) async fn chunks_of(local_kb: &LocalKnowledgeBase) -> Result<u64> {
    Ok(local_kb.kb.stats(&Scope::All).await?.counts.chunks)
}

/// Ingests copies whose sources are not `stored` yet until there are `size` chunks, and returns their number.
pub(super) async fn grow(
    local_kb: &LocalKnowledgeBase,
    copies: &Copies,
    size: u64,
    stored: &mut HashSet<String>,
) -> Result<u64> {
    let mut n = 0;
    loop {
        let chunks = chunks_of(local_kb).await?;
        if chunks >= size {
            return Ok(chunks);
        }
        import_missing(&local_kb.kb, copies.missing(n, stored), stored).await?;
        n += 1;
    }
}
