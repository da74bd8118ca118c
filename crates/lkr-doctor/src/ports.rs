//! What is checked, and what repairs need.

use std::{path::PathBuf, sync::Arc};

use lkr_catalog::{Catalog, Originals, Texts};
use lkr_domain::DocId;
use lkr_ingest::Ingestor;
use lkr_spaces::Spaces;
use lkr_state::Write;
use lkr_vectors::VectorStore;

/// Whether a record is readable, by its key and value; `None` if the record belongs to another crate.
pub type ReadRecord = fn(&str, &[u8]) -> Option<bool>;

/// Whether a record proves that a document was deleted, by its key and value: the document.
pub type ReadDeletion = fn(&str, &[u8]) -> Option<DocId>;

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
    /// What is needed to restore records; `None` if the records cannot be lost without the points, because both are in one
    /// store. Points that no record refers to are then left by a crash.
    pub restorer: Option<Restorer>,
}

/// What is needed to restore records that the state store lost.
#[derive(Debug, Clone)]
pub struct Restorer {
    /// The spaces of documents.
    pub spaces: Spaces,
    /// Readers of records that prove deletions.
    pub deletions: Vec<ReadDeletion>,
    /// Written in the step that ends the restoration of a store without any record.
    pub marks: Vec<Write>,
}

/// What repairs need.
#[derive(Debug, Clone)]
pub struct Repairer {
    /// Accepts the documents to ingest again. Its workers need not run.
    pub ingestor: Ingestor,
    /// The folder to which data is moved that may be the only copy.
    pub aside: PathBuf,
}
