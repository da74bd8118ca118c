//! What benchmarks measure with.

use std::path::PathBuf;

/// The model and the collection of a benchmark.
#[derive(Debug, clap::Args)]
pub(super) struct Material {
    /// Use the embedding model in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(super) model: PathBuf,
    /// Use the collection in this folder.
    pub(super) dir: PathBuf,
}
