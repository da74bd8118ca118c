//! What benchmarks measure with.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, ensure};
use lkr::ports::{Embedder, Precision};

use crate::{
    collection::{Input, collection},
    local_kb,
};

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
pub(super) fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    let number: std::result::Result<NonZero<usize>, _> = text.parse();
    number.map(NonZero::get).map_err(|_| "it must be a whole number, and at least 1".to_owned())
}

/// Reads the documents of a collection, or the first of them.
///
/// # Errors
/// If it has none: nothing can be measured without any.
pub(super) fn read_documents(dir: &Path, limit: Option<usize>) -> Result<Vec<Input>> {
    let mut inputs = collection(dir)?;
    ensure!(!inputs.is_empty(), "{} contains no documents", dir.display());
    inputs.truncate(limit.unwrap_or(usize::MAX));
    Ok(inputs)
}

impl Material {
    /// Opens the model.
    pub(super) fn embedder(&self) -> Result<Arc<dyn Embedder>> {
        local_kb::embedder(&self.model, self.precision, self.dims)
    }
}
