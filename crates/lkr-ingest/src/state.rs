//! The state that the operations and jobs of ingestion share.

use std::sync::Arc;

use lkr_models::SparseEncoder;
use lkr_state::KeyedMutex;
use time::OffsetDateTime;

use crate::{
    IngestOptions, Ports, duplicate_index::DuplicateIndex, gc::Gc, model_change::ModelChange,
    pending_changes::PendingChanges, queueing::Queueing, text_budget::TextBudget,
};

/// The ports and options, and one object for each thing that concurrent operations have to agree on.
#[derive(Debug)]
pub(crate) struct IngestState {
    pub(crate) ports: Ports,
    pub(crate) options: IngestOptions,
    pub(crate) sparse: SparseEncoder,
    /// When this process opened the knowledge base.
    pub(crate) opened: OffsetDateTime,
    pub(crate) gc: Arc<Gc>,
    pub(crate) queueing: Arc<Queueing>,
    pub(crate) changes: PendingChanges,
    pub(crate) text_budget: TextBudget,
    pub(crate) duplicates: DuplicateIndex,
    pub(crate) model_change: ModelChange,
    /// Serialises the submissions that replace the same document, by its id or source.
    pub(crate) submission_locks: KeyedMutex,
}

impl IngestState {
    pub(crate) fn new(ports: Ports, options: IngestOptions) -> Self {
        let opened = ports.catalog.now();
        let gc = Arc::new(Gc::new(ports.originals.clone(), ports.catalog.clone(), &ports.peers));
        let queueing = Queueing::new(
            Arc::clone(&ports.queue),
            ports.texts.clone(),
            options.queue_limit,
            Arc::clone(&gc),
        );
        Self {
            queueing: Arc::new(queueing),
            changes: PendingChanges::new(&ports, Arc::clone(&gc), opened),
            text_budget: TextBudget::new(options.long_texts),
            sparse: SparseEncoder::default(),
            duplicates: DuplicateIndex::default(),
            model_change: ModelChange::default(),
            submission_locks: KeyedMutex::default(),
            ports,
            options,
            opened,
            gc,
        }
    }
}
