//! Finding categories: of a document on its way in, of one that got its vectors late, and of all of them again.

use std::time::Instant;

use lkr_catalog::{Active, ListFilter, Progress, ReclassifyResult, Stage, Task, TaskResult};
use lkr_domain::{DocId, Document};
use lkr_taxonomy::Digest;

use crate::{
    Error, ErrorKind, Result, change, fill::own_vector, ingestor::Inner, pipeline::Report, shelves::Shelves,
};

/// How many documents are listed at a time.
const PAGE: usize = 100;

/// What a task says where categories could not be asked for.
const NO_CATEGORY: &str = "the category could not be found out";

/// The vector of a document, and the id of the model that made it.
pub(crate) type Vector<'a> = (&'a [f32], &'a str);

/// The category of a document with this vector; empty for none. A classifier that fails leaves the document without,
/// and a warning: that is no reason to refuse it.
pub(crate) async fn category_of(
    inner: &Inner,
    document: &Document,
    vector: Option<Vector<'_>>,
) -> (String, Option<String>) {
    match ask(inner, document, vector).await {
        Ok(category) => (category, None),
        Err(error) => {
            tracing::warn!(doc_id = %document.doc_id, %error, "a document could not be classified");
            (String::new(), Some(format!("{NO_CATEGORY}: {error}")))
        }
    }
}

async fn ask(inner: &Inner, document: &Document, vector: Option<Vector<'_>>) -> Result<String> {
    let Some(classifier) = &inner.ports.classifier else { return Ok(String::new()) };
    let Document { title, summary, keywords, .. } = document;
    let (vector, model) = vector.unzip();
    let digest = Digest { title, summary, keywords, vector, model };
    let verdict = classifier.classify(&digest).await?;
    Ok(verdict.map(|verdict| verdict.name).unwrap_or_default())
}

/// Gives a document that has got its vectors the category that it could not have without.
pub(crate) async fn catch_up(inner: &Inner, document: &Document, vector: Option<Vector<'_>>) -> Result<()> {
    if document.category_by_hand || !document.category.is_empty() {
        return Ok(());
    }
    let (category, _) = category_of(inner, document, vector).await;
    if !category.is_empty() {
        change::categorise(inner, document.doc_id, &category).await?;
    }
    Ok(())
}

/// Classifies every live document, and ends the task. Each one is shown with its new category at once.
pub(crate) async fn reclassify(inner: &Inner, active: Active, task: &Task, report: &Report) -> Result<()> {
    let begun = Instant::now();
    let total = inner.ports.catalog.stats().await?.counts.l1;
    report.send_replace((Stage::Classify, Progress { done: 0, total }));
    let mut result = ReclassifyResult::default();
    let mut after: Option<DocId> = None;
    loop {
        let page = inner.ports.catalog.list(&ListFilter::default(), after, PAGE).await?;
        for document in &page.items {
            classify_again(inner, document, &mut result).await?;
            let progress = Progress { done: result.documents, total: total.max(result.documents) };
            report.send_replace((Stage::Classify, progress));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if inner.ports.embedders.embedders().is_empty() {
        result.warnings.push("no embedding model: no category can be found until there is one".to_owned());
    }
    result.elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let done = task.done(Stage::Classify, result.documents, TaskResult::Reclassified(result));
    Ok(inner.ports.catalog.end(active, &done).await?)
}

async fn classify_again(inner: &Inner, document: &Document, result: &mut ReclassifyResult) -> Result<()> {
    result.documents += 1;
    if document.category_by_hand {
        result.by_hand += 1;
        return Ok(());
    }
    let Some((vector, model)) = vector_of(inner, document).await? else {
        // What has no vector yet is classified when it gets one; what it has until then stays.
        result.uncategorized += u64::from(document.category.is_empty());
        return Ok(());
    };
    let category = match ask(inner, document, Some((&vector, &model))).await {
        Err(error) if !error.is_retryable() => {
            result.uncategorized += u64::from(document.category.is_empty());
            result.warn(format!("{}: {NO_CATEGORY}: {error}", document.doc_id));
            return Ok(());
        }
        asked => asked?,
    };
    result.uncategorized += u64::from(category.is_empty());
    result.changed += u64::from(change::categorise(inner, document.doc_id, &category).await?);
    Ok(())
}

/// The document's own vector, where it has one, and the model that made it.
async fn vector_of(inner: &Inner, document: &Document) -> Result<Option<(Vec<f32>, String)>> {
    let embedders = &inner.ports.embedders;
    if embedders.embedders().is_empty() {
        return Ok(None);
    }
    let live = Shelves::live_model(&*inner.ports.vectors).await?;
    let Some(model) = live.filter(|live| embedders.embedder_of(live).is_some()) else {
        let reason = "documents are being embedded anew; their categories can be found when that is done";
        return Err(Error::new(ErrorKind::ModelAway, "reclassify", reason));
    };
    Ok(own_vector(inner, &model, document).await?.map(|vector| (vector, model)))
}
