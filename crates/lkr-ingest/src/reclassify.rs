//! The task that classifies all documents again.

use std::time::Instant;

use lkr_catalog::{ActiveTask, ListFilter, Progress, ReclassifyResult, Stage, Task, TaskResult};
use lkr_domain::{DocId, Document, Layer, Scope};

use crate::{
    Error, ErrorKind, Ports, Result,
    categorize::{CLASSIFICATION_FAILED, classify},
    change::set_category,
    collection_set::live_collection_of,
    collections::live_model,
    pending_changes::PendingChanges,
    report::Report,
    vector_fill::own_vector,
};

/// The number of documents that are listed at a time.
const PAGE: usize = 100;

/// Classifies every live document, or those of the task's space, and ends the task. Searches see each new category at once.
pub(crate) async fn reclassify(
    ports: &Ports,
    changes: &PendingChanges,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let begun = Instant::now();
    let scope = task.space.clone().map_or(Scope::All, Scope::of);
    let total = ports.catalog.stats(&scope).await?.counts.l1;
    report.progress(Stage::Classify, Progress { done: 0, total });
    let mut result = ReclassifyResult::default();
    let mut after: Option<DocId> = None;
    let mut lacks_vectors = false;
    loop {
        let page = ports.catalog.list(&scope, &ListFilter::default(), after, PAGE).await?;
        for document in &page.items {
            lacks_vectors |= classify_again(ports, changes, document, &mut result).await?;
            let total = total.max(result.documents);
            report.progress(Stage::Classify, Progress { done: result.documents, total });
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if lacks_vectors && ports.embedders.embedders().is_empty() {
        result.warnings.push("no embedding model: no category can be found until there is one".to_owned());
    }
    result.elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let done =
        task.done(ports.catalog.now(), Stage::Classify, result.documents, TaskResult::Reclassified(result));
    Ok(ports.catalog.end(active, &done).await?)
}

/// Classifies a document again. Returns whether it lacks a vector for that.
async fn classify_again(
    ports: &Ports,
    changes: &PendingChanges,
    document: &Document,
    result: &mut ReclassifyResult,
) -> Result<bool> {
    result.documents += 1;
    if document.category_by_hand {
        result.by_hand += 1;
        return Ok(false);
    }
    let vector = live_vector(ports, document).await?;
    let vector = vector.as_ref().map(|(vector, model)| (vector.as_slice(), model.as_str()));
    let classified = match classify(ports, document, vector).await {
        Err(error) if !error.is_retryable() => {
            result.uncategorized += u64::from(document.category.is_empty());
            result.warn(format!("{}: {CLASSIFICATION_FAILED}: {error}", document.doc_id));
            return Ok(false);
        }
        classified => classified?,
    };
    result.usage.calls += classified.calls;
    result.usage.tokens += classified.tokens;
    if let Some(warning) = classified.warning {
        result.warn(format!("{}: {warning}", document.doc_id));
    }
    if classified.needs_vector {
        // It keeps its category. One without is classified when it gets its vector.
        result.uncategorized += u64::from(document.category.is_empty());
        return Ok(true);
    }
    let category = classified.classification.map(|category| category.name).unwrap_or_default();
    result.uncategorized += u64::from(category.is_empty());
    result.changed += u64::from(set_category(ports, changes, document.doc_id, &category).await?);
    Ok(false)
}

/// The document's vector of the live model, and the id of that model; `None` if it has none.
async fn live_vector(ports: &Ports, document: &Document) -> Result<Option<(Vec<f32>, String)>> {
    let embedders = &ports.embedders;
    if embedders.embedders().is_empty() {
        return Ok(None);
    }
    let live = live_model(&*ports.vectors).await?;
    let Some(model) = live.filter(|live| embedders.embedder_of(live).is_some()) else {
        return Err(reembedding());
    };
    // The aliases may have been switched since.
    let Some(l1) = live_collection_of(&*ports.vectors, Layer::L1, &model).await? else {
        return Err(reembedding());
    };
    Ok(own_vector(ports, &l1, document).await?.map(|vector| (vector, model)))
}

fn reembedding() -> Error {
    let reason = "documents are being re-embedded; their categories can be found afterwards";
    Error::new(ErrorKind::ModelUnavailable, "reclassify", reason)
}
