//! The arguments of `lkr eval`.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::ValueEnum;
use lkr::ports::{Embedder, Precision};

use crate::{connection::Login, local_kb};

/// The arguments of `lkr eval`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Evaluate the collection in this folder: queries.jsonl, qrels.tsv or qrels_docs.tsv, and documents.
    pub(super) dir: PathBuf,
    /// Choose the layers that a server searches.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    pub(super) mode: ModeArg,
    /// Choose how a server fuses the legs.
    #[arg(long, value_enum, default_value_t, requires = "server")]
    pub(super) fusion: FusionArg,
    /// Send the collection's documents to the server first.
    #[arg(long, requires = "server")]
    pub(super) ingest: bool,
    /// Use the queries of queries_NAME.jsonl and qrels_NAME.tsv.
    #[arg(long, value_name = "NAME")]
    pub(super) split: Option<String>,
    /// Write the figures to this file as JSON, or to the standard output for `-`. With --server, they include those of
    /// each query.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Keep the local knowledge base in this folder and reuse its documents. Without it, a temporary folder is used.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    pub(super) data_dir: Option<PathBuf>,
    /// Use the embedding model in this folder for the local knowledge base. Without it, searches use words alone.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    model: Option<PathBuf>,
    /// The precision of the model: float32, bf16 or int8.
    #[arg(long, default_value = "float32", requires = "model")]
    precision: Precision,
    /// Keep this many numbers of each vector, from the first on, of a model that was trained for it (matryoshka).
    #[arg(long, value_name = "N", requires = "model")]
    dims: Option<usize>,
    /// Bring the documents into the local knowledge base as Markdown files, titled by their file names, instead of as
    /// texts with the collection's titles.
    #[arg(long, conflicts_with = "server")]
    pub(super) as_files: bool,
    /// Query the dense legs of local layered searches a second time.
    #[arg(long, conflicts_with = "server")]
    pub(super) second_round: bool,
    /// Measure how much of the judged passages local contexts of 500 to 4,000 tokens contain, instead of searches.
    #[arg(long, conflicts_with_all = ["server", "second_round", "per_query"])]
    pub(super) context: bool,
    /// Write the local results of each query to this file, for `lkr compare`.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub(super) per_query: Option<PathBuf>,
    #[command(flatten)]
    pub(super) login: Login,
}

impl Args {
    /// Opens the model for the local knowledge base, if one is named.
    pub(super) fn embedder(&self) -> Result<Option<Arc<dyn Embedder>>> {
        self.model.as_deref().map(|model| local_kb::embedder(model, self.precision, self.dims)).transpose()
    }
}

/// The layers that are searched.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ModeArg {
    /// Search all four layers.
    #[default]
    Layered,
    /// Search chunks alone.
    Flat,
}

/// The fusion of the legs.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum FusionArg {
    /// Use reciprocal-rank fusion over graded ranks.
    #[default]
    Graded,
    /// Use plain reciprocal-rank fusion.
    Rrf,
}
