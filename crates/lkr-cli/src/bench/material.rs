//! What benchmarks measure with.

use std::{num::NonZero, path::PathBuf, sync::Arc};

use lkr::ports::{Embedder, Precision};

use crate::local_kb;

/// The model and the collection of a benchmark.
#[derive(Debug, clap::Args)]
pub(super) struct Material {
    /// Use the embedding model in this folder.
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// The precision of the model: float32, bf16 or int8.
    #[arg(long, default_value = "float32")]
    precision: Precision,
    /// Keep this many numbers of each vector, from the first on, of a model that was trained for it (matryoshka).
    #[arg(long, value_name = "N")]
    dims: Option<usize>,
    /// Use the collection in this folder.
    pub(super) dir: PathBuf,
}

/// Parses a number of documents or queries: nothing can be measured with none.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    let number: Result<NonZero<usize>, _> = text.parse();
    number.map(NonZero::get).map_err(|_| "it must be a whole number, and at least 1".to_owned())
}

impl Material {
    /// Opens the model.
    pub(super) fn embedder(&self) -> anyhow::Result<Arc<dyn Embedder>> {
        local_kb::embedder(&self.model, self.precision, self.dims)
    }
}
