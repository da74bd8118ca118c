use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use lkr_domain::{Scope, SpaceName};

use crate::{LegKind, Result, SearchRequest, SearchResponse};

/// A cache of responses. A failure of the cache never fails a search.
///
/// An entry lives at most 5 minutes. A cache need not invalidate entries: every visible change makes their keys
/// obsolete.
#[async_trait]
pub trait SearchCache: Debug + Send + Sync + 'static {
    /// The response that is cached under `key`.
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<SearchResponse>>>;

    /// Caches a response under `key`.
    async fn put(&self, key: &CacheKey, response: Arc<SearchResponse>) -> Result<()>;

    /// The size of the cache, about; `None` if it cannot tell.
    fn size(&self) -> Option<CacheSize> {
        None
    }
}

/// The size of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheSize {
    /// The number of responses.
    pub entries: u64,
    /// The bytes that they take in memory.
    pub bytes: u64,
}

/// Everything that a response depends on. Keys are compared by value, never by a hash alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The request in its normal form.
    pub request: Arc<SearchRequest>,
    /// The catalog's generation, read before the models were opened and the retrieval began. It grows with every visible change
    /// and with every change of the settings.
    pub generation: u64,
    /// The id of the embedding model; `None` without one.
    pub model: Option<String>,
    /// The id of the reranker; `None` without one.
    pub reranker: Option<String>,
    /// The name of the language model that writes the summary; `None` without one or without a summary.
    pub summarizer: Option<String>,
    /// How many candidates each leg lists.
    pub candidates: usize,
    /// Whether the second round is on.
    pub second_round: bool,
    /// The only kind of legs that is queried; `None` for both.
    pub only: Option<LegKind>,
}

/// Whether a response came from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// It came from the cache.
    Hit,
    /// It was retrieved for this request.
    Miss,
}

/// A cache in the memory of the process.
#[derive(Debug, Clone)]
pub struct MemoryCache {
    entries: moka::sync::Cache<CacheKey, Arc<SearchResponse>>,
}

impl MemoryCache {
    /// The longest time that an entry may live.
    pub const MAX_TIME_TO_LIVE: Duration = Duration::from_mins(5);

    /// A cache of about `max_bytes`. Entries live for `time_to_live`, at most for
    /// [`MAX_TIME_TO_LIVE`](Self::MAX_TIME_TO_LIVE).
    #[must_use]
    pub fn new(max_bytes: u64, time_to_live: Duration) -> Self {
        let entries = moka::sync::Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|key: &CacheKey, response: &Arc<SearchResponse>| weight(key, response))
            .time_to_live(time_to_live.min(Self::MAX_TIME_TO_LIVE))
            .build();
        Self { entries }
    }
}

impl Default for MemoryCache {
    /// 16 MiB for 5 minutes.
    fn default() -> Self {
        Self::new(16 << 20, Self::MAX_TIME_TO_LIVE)
    }
}

#[async_trait]
impl SearchCache for MemoryCache {
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<SearchResponse>>> {
        Ok(self.entries.get(key))
    }

    async fn put(&self, key: &CacheKey, response: Arc<SearchResponse>) -> Result<()> {
        self.entries.insert(key.clone(), response);
        Ok(())
    }

    fn size(&self) -> Option<CacheSize> {
        self.entries.run_pending_tasks();
        Some(CacheSize { entries: self.entries.entry_count(), bytes: self.entries.weighted_size() })
    }
}

/// The approximate size of an entry in memory, in bytes.
fn weight(key: &CacheKey, response: &SearchResponse) -> u32 {
    let bytes = request_bytes(&key.request) + response_bytes(response);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn request_bytes(request: &SearchRequest) -> usize {
    let filters = &request.filters;
    let texts = [&filters.category, &filters.source, &filters.language];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let metadata: usize =
        filters.metadata.iter().map(|(k, v)| k.len() + v.len() + 2 * size_of::<String>()).sum();
    let ids = filters.doc_ids.as_ref().map_or(0, |ids| size_of_val(ids.as_slice()));
    // Parsed values take about the room of their JSON and a string each.
    let expr = filters.filter_expr.as_ref().map_or(0, |expr| 4 * expr.to_json().to_string().len());
    size_of::<CacheKey>() + request.query.len() + scope_bytes(&request.scope) + texts + metadata + ids + expr
}

/// Each caller that may not read all spaces has a set of names, which no other entry shares.
fn scope_bytes(scope: &Scope) -> usize {
    match scope {
        Scope::All => 0,
        // The nodes of the set are half full at least.
        Scope::Spaces(names) => {
            names.iter().map(|name| name.as_str().len() + 2 * size_of::<SpaceName>()).sum()
        }
    }
}

fn response_bytes(response: &SearchResponse) -> usize {
    let results: usize = response
        .results
        .iter()
        .map(|r| {
            let path: usize = r.path.iter().map(|heading| heading.len() + size_of::<String>()).sum();
            let texts = r.title.len() + r.source.len() + r.category.len() + r.text.len();
            size_of_val(r) + texts + path + size_of_val(r.highlights.as_slice())
        })
        .sum();
    let layers = &response.layers;
    let hits = layers.l1.iter().chain(&layers.l2).chain(&layers.l3);
    let layers: usize = hits.map(|hit| size_of_val(hit) + hit.title.len() + hit.summary.len()).sum();
    let summary = response.summary.as_ref().map_or(0, |s| s.text.len() + 64 * s.citations.len());
    let explain = response
        .explain
        .as_ref()
        .map_or(0, |e| size_of_val(e.legs.as_slice()) + size_of_val(e.results.as_slice()));
    let warnings: usize = response.warnings.iter().map(String::len).sum();
    size_of::<SearchResponse>() + response.query.len() + results + layers + summary + explain + warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_of_an_entry_includes_the_names_of_its_spaces() {
        let bytes = |spaces: usize| {
            let names = (0..spaces).map(|n| SpaceName::new(format!("space-{n:058}")).unwrap());
            request_bytes(&SearchRequest { scope: names.collect(), ..SearchRequest::new("q") })
        };
        assert!(bytes(1_000) - bytes(0) >= 1_000 * (64 + size_of::<SpaceName>()));
    }
}
