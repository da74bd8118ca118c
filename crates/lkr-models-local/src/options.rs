use std::num::NonZero;
use std::thread::available_parallelism;

/// The `c₁ − cos` factor that was tuned on all-MiniLM-L6-v2: 61 × 0.5, half of k + 1 in reciprocal rank fusion.
pub const MINILM_COSINE_SCALE: f32 = 30.5;

/// What the folder of a model does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalOptions {
    /// How many threads may embed passages at the same time, over all calls; at least 1 is taken.
    pub passage_threads: usize,
    /// How many threads may embed queries at the same time, beside those of the passages; at least 1 is taken.
    pub query_threads: usize,
    /// What stands before a query, in place of the folder's prompt `query`.
    pub query_prefix: Option<String>,
    /// What stands before a passage, in place of the folder's prompt `document` or `passage`.
    pub passage_prefix: Option<String>,
    /// How far the model's cosines spread, see [`lkr_models::EmbedderProfile::cosine_scale`].
    pub cosine_scale: f32,
}

impl Default for LocalOptions {
    /// A thread for each core, for passages and for queries; the folder's prompts; MiniLM's range of cosines.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self {
            passage_threads: cores,
            query_threads: cores,
            query_prefix: None,
            passage_prefix: None,
            cosine_scale: MINILM_COSINE_SCALE,
        }
    }
}
