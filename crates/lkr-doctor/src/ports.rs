//! What is checked, and what repairs need.

use std::{path::PathBuf, sync::Arc};

use lkr_catalog::{Catalog, Originals, Texts};
use lkr_ingest::Ingestor;
use lkr_vectors::VectorStore;

/// Whether a record is readable, by its key and value; `None` if the record belongs to another crate.
pub type ReadRecord = fn(&str, &[u8]) -> Option<bool>;

/// The stores to check.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records.
    pub catalog: Catalog,
    /// The texts.
    pub texts: Texts,
    /// The originals.
    pub originals: Originals,
    /// Readers of the records that do not belong to the catalog.
    pub readers: Vec<ReadRecord>,
}

/// What repairs need.
#[derive(Debug, Clone)]
pub struct Repairer {
    /// Accepts the documents to ingest again. Its workers need not run.
    pub ingestor: Ingestor,
    /// The folder to which data is moved that may be the only copy.
    pub aside: PathBuf,
}
