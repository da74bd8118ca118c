//! What benchmarks measure with.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
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
    /// Use the collection in this folder.
    pub(super) dir: PathBuf,
}

impl Material {
    /// Opens the model.
    pub(super) fn embedder(&self) -> Result<Arc<dyn Embedder>> {
        local_kb::embedder(&self.model, self.precision)
    }
}
