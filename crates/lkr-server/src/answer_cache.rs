//! The JSON of search responses that were asked for more than once, in bounded memory. It checks no rights: it answers only for
//! a response that the caller already has.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use lkr::SearchResponse;
use lkr_retrieval::MemoryCache;
use moka::sync::Cache;

/// The memory of all entries. Chosen, not measured: about 700 answers of ten results.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The memory of an entry besides its JSON. The response's own texts are freed when its last user drops it.
const ENTRY_BYTES: usize = 256 + size_of::<SearchResponse>();

/// The JSON of cached responses, by their address in memory.
pub(crate) struct AnswerCache(Cache<usize, CachedAnswer>);

#[derive(Clone)]
struct CachedAnswer {
    /// It keeps the address from being given to another response.
    _response: Weak<SearchResponse>,
    json: Bytes,
}

impl fmt::Debug for AnswerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerCache").field("entries", &self.0.entry_count()).finish()
    }
}

impl Default for AnswerCache {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(MAX_BYTES)
            .weigher(|_, answer: &CachedAnswer| {
                u32::try_from(ENTRY_BYTES.saturating_add(answer.json.len())).unwrap_or(u32::MAX)
            })
            .time_to_live(MemoryCache::MAX_TIME_TO_LIVE);
        Self(cache.build())
    }
}

impl AnswerCache {
    /// The JSON that `serialize` makes of a response from the cache of searches. It is kept if that cache keeps the response in
    /// memory, too: one that is read from elsewhere has a new address each time.
    pub(crate) fn json<E>(
        &self,
        response: &Arc<SearchResponse>,
        serialize: impl FnOnce(&SearchResponse) -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let address = Arc::as_ptr(response).addr();
        if let Some(answer) = self.0.get(&address) {
            return Ok(answer.json);
        }
        let json = serialize(response)?;
        if Arc::strong_count(response) > 1 {
            let answer = CachedAnswer { _response: Arc::downgrade(response), json: json.clone() };
            self.0.insert(address, answer);
        }
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use super::*;

    /// The JSON that the cache gives for a response, and whether it had to be made.
    fn json(cache: &AnswerCache, response: &Arc<SearchResponse>) -> (String, bool) {
        let is_made = Cell::new(false);
        let serialize = |response: &SearchResponse| {
            is_made.set(true);
            Ok::<_, Infallible>(Bytes::from(response.query.clone()))
        };
        let json = cache.json(response, serialize).unwrap();
        (String::from_utf8(json.to_vec()).unwrap(), is_made.get())
    }

    fn response(query: &str) -> Arc<SearchResponse> {
        Arc::new(SearchResponse { query: query.to_owned(), ..SearchResponse::default() })
    }

    #[test]
    fn a_response_that_is_kept_elsewhere_is_serialised_once() {
        let cache = AnswerCache::default();
        let (kept, other) = (response("kept"), response("other"));
        let copies = (Arc::clone(&kept), Arc::clone(&other));
        assert_eq!(json(&cache, &kept), ("kept".to_owned(), true));
        assert_eq!(json(&cache, &kept), ("kept".to_owned(), false));
        assert_eq!(json(&cache, &other), ("other".to_owned(), true));
        assert_eq!(json(&cache, &copies.0), ("kept".to_owned(), false));
    }

    #[test]
    fn a_response_that_nobody_else_has_is_not_kept() {
        let cache = AnswerCache::default();
        let read = response("read from another process");
        assert!(json(&cache, &read).1 && json(&cache, &read).1);
    }

    #[test]
    fn a_new_response_never_gets_the_json_of_a_dropped_one() {
        let cache = AnswerCache::default();
        for number in 0..1_000 {
            let first = response(&number.to_string());
            let second = Arc::clone(&first);
            assert_eq!(json(&cache, &second), (number.to_string(), true));
        }
    }

    #[test]
    fn entries_take_bounded_memory() {
        let cache = AnswerCache::default();
        let long = "a".repeat(1024 * 1024);
        let responses: Vec<_> = (0..50).map(|_| response(&long)).collect();
        for kept in &responses {
            json(&cache, &Arc::clone(kept));
        }
        cache.0.run_pending_tasks();
        assert!(cache.0.weighted_size() <= MAX_BYTES && cache.0.entry_count() > 5);
    }
}
