use std::num::NonZero;
use std::thread::available_parallelism;

use lkr_models::Precision;

/// Options that the folder of a model does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalOptions {
    /// The number of threads that embed passages at a time, over all calls; at least 1. On Linux they have a lower priority than the
    /// other threads of the process.
    pub passage_threads: usize,
    /// The number of threads that embed queries at a time, in addition to those of passages; at least 1.
    pub query_threads: usize,
    /// The prefix of queries, instead of the folder's prompt `query`.
    pub query_prefix: Option<String>,
    /// The prefix of passages, instead of the folder's prompt `document` or `passage`.
    pub passage_prefix: Option<String>,
    /// The factor of `c₁ − cos` in graded ranks, see [`lkr_models::EmbedderProfile::cosine_scale`]. Without one, it is 30.5
    /// for the published files of all-MiniLM-L6-v2, for which it was tuned, and unknown for other models.
    pub cosine_scale: Option<f32>,
    /// The precision of the products with weights. Vectors of different precisions are those of different models.
    pub precision: Precision,
    /// The numbers of each vector that are kept, from the first on, instead of the folder's `truncate_dim`; the rest is scaled
    /// to length 1. For models that were trained for it (matryoshka representations). At least 1 and at most the model's
    /// dimensions. Vectors of different lengths are those of different models.
    pub truncate_dim: Option<usize>,
}

impl Default for LocalOptions {
    /// One thread for each core for passages and the same for queries; the folder's prompts.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self {
            passage_threads: cores,
            query_threads: cores,
            query_prefix: None,
            passage_prefix: None,
            cosine_scale: None,
            precision: Precision::default(),
            truncate_dim: None,
        }
    }
}
