use std::num::NonZero;
use std::thread::available_parallelism;

/// The factor of `c₁ − cos` that was tuned on all-MiniLM-L6-v2: 61 × 0.5, half of k + 1 of reciprocal-rank fusion. See
/// docs/studies.md#cosine-scale.
pub const MINILM_COSINE_SCALE: f32 = 30.5;

/// Options that the folder of a model does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalOptions {
    /// The number of threads that embed passages at a time, over all calls; at least 1.
    pub passage_threads: usize,
    /// The number of threads that embed queries at a time, in addition to those of passages; at least 1.
    pub query_threads: usize,
    /// The prefix of queries, instead of the folder's prompt `query`.
    pub query_prefix: Option<String>,
    /// The prefix of passages, instead of the folder's prompt `document` or `passage`.
    pub passage_prefix: Option<String>,
    /// The spread of the model's cosines, see [`lkr_models::EmbedderProfile::cosine_scale`].
    pub cosine_scale: f32,
}

impl Default for LocalOptions {
    /// One thread for each core for passages and the same for queries; the folder's prompts; MiniLM's cosine scale.
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
