//! Gives dense vectors to documents that came in while the model was not there, and finds out how the model's cosines
//! spread where nobody did yet.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lkr_domain::DocId;
use lkr_models::Embedder;
use lkr_vectors::{Condition, Filter};

use crate::{
    Result,
    calibrate::calibrate_first,
    classify,
    collection_sets::{CollectionSets, delete_everywhere},
    fill::{fill, own_vector},
    ingestor::Inner,
};

/// How many notes are read at a time.
const PAGE: usize = 100;

/// The pause before what failed is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// How often it is looked around unasked.
const ROUND: Duration = Duration::from_secs(60);

/// Sees for ever to it that every document has vectors of the model that searches use. While a task changes the model,
/// that does it.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut given_up = GivenUp::default();
    loop {
        if let Err(error) = catch_up(&inner, &mut given_up).await {
            tracing::warn!(%error, "embedding what came in without a model failed; it will be tried again");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let _ = tokio::time::timeout(ROUND, inner.noted.notified()).await;
    }
}

/// Documents that a model has no vectors for, which only the next start tries again.
#[derive(Debug, Default)]
struct GivenUp {
    model: String,
    documents: BTreeSet<DocId>,
}

async fn catch_up(inner: &Inner, given_up: &mut GivenUp) -> Result<()> {
    let catalog = &inner.ports.catalog;
    let Some(live) = CollectionSets::live_model(&*inner.ports.vectors).await? else { return Ok(()) };
    let Some(embedder) = inner.ports.embedders.embedder_of(&live) else { return Ok(()) };
    if given_up.model != live {
        *given_up = GivenUp { model: live, documents: BTreeSet::new() };
    }
    let mut after = None;
    // Its notes are its own as long as it is under way.
    while !catalog.is_reembedding().await? {
        let noted = catalog.unembedded(after, PAGE).await?;
        let Some(last) = noted.last() else { return calibrate_first(inner, &*embedder).await };
        after = Some(*last);
        let mut done = Vec::new();
        for doc_id in noted {
            if given_up.documents.contains(&doc_id) {
                continue;
            }
            match settle(inner, &*embedder, doc_id).await {
                Ok(()) => done.push(doc_id),
                Err(error) if error.is_retryable() => return Err(error),
                // It keeps no other from having vectors.
                Err(error) => {
                    tracing::error!(%doc_id, %error, "a document stays without vectors");
                    given_up.documents.insert(doc_id);
                }
            }
        }
        if !done.is_empty() {
            catalog.embedded(&done).await?;
        }
    }
    Ok(())
}

/// Gives a document that was noted its vectors, and the category that it could not have without; removes what is left
/// of one that is gone.
async fn settle(inner: &Inner, embedder: &dyn Embedder, doc_id: DocId) -> Result<()> {
    let catalog = &inner.ports.catalog;
    fill(inner, embedder, doc_id).await?;
    if let Some(document) = catalog.document(doc_id).await? {
        let model = &embedder.profile().id;
        let own = own_vector(inner, model, &document.value).await?;
        return classify::catch_up(inner, &document.value, own.as_deref().map(|own| (own, &**model))).await;
    }
    if catalog.active(doc_id.into()).await?.is_none() {
        let filter = Filter::only(Condition::Docs(vec![doc_id]));
        delete_everywhere(&*inner.ports.vectors, &filter).await?;
    }
    Ok(())
}
