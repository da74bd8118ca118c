use std::sync::Arc;

use lkr_catalog::{Catalog, Originals, Texts};
use lkr_models::{ChatModelSource, EmbedderSource};
use lkr_parsers::Parser;
use lkr_state::{Peers, TaskQueue};
use lkr_taxonomy::Classifier;
use lkr_vectors::VectorStore;

use crate::{DeletionPolicy, Evaluator, SpaceRecords, TaskObserver};

/// The stores and models that ingestion works with.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records of documents and tasks.
    pub catalog: Catalog,
    /// The tasks to run.
    pub queue: Arc<dyn TaskQueue>,
    /// The extracted texts.
    pub texts: Texts,
    /// The uploaded files.
    pub originals: Originals,
    /// The embedding models. Without one, points have no dense vectors until there is one.
    pub embedders: Arc<dyn EmbedderSource>,
    /// Finds the blocks of a text that was sent as JSON.
    pub parser: Arc<dyn Parser>,
    /// Finds the category of a document. Without one, only people choose categories.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// Names the language model that writes summaries. Without one, summaries are extracted from the text.
    pub chat_models: Option<Arc<dyn ChatModelSource>>,
    /// Measures the quality of searches. Without one, evaluation tasks fail.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// The rights of tasks that delete documents. Without it, they may delete everything.
    pub deletion: Option<Arc<dyn DeletionPolicy>>,
    /// The records of spaces. Without it, deleting a space leaves none to remove, and every space takes retried documents.
    pub spaces: Option<Arc<dyn SpaceRecords>>,
    /// Receives what happens to tasks.
    pub observer: Option<Arc<dyn TaskObserver>>,
    /// The processes that work on these stores.
    pub peers: Peers,
}
