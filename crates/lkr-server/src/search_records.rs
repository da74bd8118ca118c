//! What is counted and logged of every search, whichever protocol asked for it.

use std::time::Duration;

use lkr::SearchProfile;

use crate::{http::RequestId, slow_searches::FinishedSearch, state::AppState};

impl AppState {
    /// Counts a search, and logs it if it was slow. A search without a profile was answered by the cache.
    pub(crate) fn record_search(
        &self,
        request_id: &RequestId,
        query: &str,
        took: Duration,
        profile: Option<&SearchProfile>,
    ) {
        let Some(profile) = profile else { return self.metrics.search_hit() };
        self.metrics.search_miss(took, profile);
        self.log_if_slow(request_id, query, took, profile);
    }

    /// Counts the search for a context, and logs it if it was slow.
    pub(crate) fn record_context(
        &self,
        request_id: &RequestId,
        query: &str,
        took: Duration,
        profile: &SearchProfile,
    ) {
        self.metrics.search_profile(profile);
        self.log_if_slow(request_id, query, took, profile);
    }

    /// Logs a search that was slower than the configuration says.
    fn log_if_slow(&self, request_id: &RequestId, query: &str, took: Duration, profile: &SearchProfile) {
        let query_chars = query.chars().count();
        let finished = FinishedSearch { request_id: request_id.as_str(), query_chars, took, profile };
        if finished.log_if_slower(self.options.slow_search) {
            self.metrics.slow_search();
        }
    }
}
