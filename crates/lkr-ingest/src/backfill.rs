//! Gives vectors to documents that were ingested while the model was unavailable, and calibrates a model that was not.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lkr_domain::DocId;
use lkr_models::Embedder;
use lkr_vectors::{Condition, Filter};

use crate::{
    Ports, Result,
    calibrate::calibrate,
    categorize::categorize_late,
    collection_set::CollectionSet,
    collections::{delete_everywhere, live_model},
    state::IngestState,
    vector_fill::{VectorFiller, own_vector},
};

/// The number of notes that are read at a time.
const PAGE: usize = 100;

/// The pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// The role of the process that does this for all.
const ROLE: &str = "backfill";

/// The longest time between two rounds.
const ROUND: Duration = Duration::from_secs(60);

/// Runs forever. While a task changes the model, that task does this work.
pub(crate) async fn run(state: Arc<IngestState>) {
    let mut tried = Tried::default();
    loop {
        let done = async {
            if state.ports.peers.leads(ROLE).await? { backfill(&state, &mut tried).await } else { Ok(()) }
        };
        if let Err(error) = done.await {
            tracing::warn!(%error, pause = ?RETRY_PAUSE, "cannot embed the documents that lack vectors; will retry");
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        }
        let _ = tokio::time::timeout(ROUND, state.model_change.wake_backfill.notified()).await;
    }
}

/// What was tried with the live model since the start.
#[derive(Debug, Default)]
struct Tried {
    model: String,
    /// Documents that it cannot embed. They are tried again at the next start.
    unembeddable: BTreeSet<DocId>,
    is_calibrated: bool,
}

async fn backfill(state: &IngestState, tried: &mut Tried) -> Result<()> {
    let catalog = &state.ports.catalog;
    let Some(live) = live_model(&*state.ports.vectors).await? else { return Ok(()) };
    let Some(embedder) = state.ports.embedders.embedder_of(&live) else { return Ok(()) };
    // If the aliases are being switched, this is called again afterwards.
    let Some(target) = CollectionSet::live_of(&*state.ports.vectors, &live).await? else { return Ok(()) };
    if tried.model != live {
        *tried = Tried { model: live, ..Tried::default() };
    }
    let mut after = None;
    while !catalog.is_reembedding().await? {
        let noted = catalog.unembedded(after, PAGE).await?;
        let Some(last) = noted.last() else {
            if !tried.is_calibrated {
                calibrate(&state.ports, &*embedder, state.options.batch).await?;
                tried.is_calibrated = true;
            }
            return Ok(());
        };
        after = Some(last.doc_id);
        for note in noted {
            let doc_id = note.doc_id;
            if tried.unembeddable.contains(&doc_id) {
                continue;
            }
            match complete(state, &target, &*embedder, doc_id).await {
                Ok(true) => catalog.mark_embedded(&note).await?,
                Ok(false) => {}
                Err(error) if error.is_retryable() => return Err(error),
                // One document does not block the others.
                Err(error) => {
                    tracing::error!(%doc_id, %error, "cannot embed a document; its words alone find it");
                    tried.unembeddable.insert(doc_id);
                }
            }
        }
    }
    Ok(())
}

async fn live_revision(ports: &Ports, doc_id: DocId) -> Result<Option<u64>> {
    let document = ports.catalog.document(doc_id).await?;
    Ok(document.map(|document| document.value.revision))
}

/// Gives a document its vectors, and the category that needed them. Removes what is left of a deleted document. `false` if
/// another revision was published meanwhile, which may lack them, or if garbage collection is paused.
async fn complete(
    state: &IngestState,
    target: &CollectionSet,
    embedder: &dyn Embedder,
    doc_id: DocId,
) -> Result<bool> {
    let (ports, changes) = (&state.ports, &state.changes);
    let before = live_revision(ports, doc_id).await?;
    let filler = VectorFiller { ports, changes, target, batch: state.options.batch, moves: false };
    filler.fill(embedder, doc_id).await?;
    if let Some(document) = ports.catalog.document(doc_id).await? {
        let model = &embedder.profile().id;
        let l1_vector = own_vector(ports, &target.l1, &document.value).await?;
        let vector = l1_vector.as_deref().map(|l1_vector| (l1_vector, &**model));
        categorize_late(ports, changes, &document.value, vector).await?;
        return Ok(live_revision(ports, doc_id).await? == before);
    }
    if ports.catalog.active(doc_id.into()).await?.is_none() {
        let Some(_collecting) = state.gc.try_collect().await? else { return Ok(false) };
        let filter = Filter::only(Condition::Docs(vec![doc_id]));
        delete_everywhere(&*ports.vectors, &filter).await?;
    }
    Ok(before.is_none())
}
