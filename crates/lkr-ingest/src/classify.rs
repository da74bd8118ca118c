//! Finding categories: of a document on its way in, of one that got its vectors late, and of all of them again.

use std::time::Instant;

use lkr_catalog::{ActiveTask, ListFilter, ModelUsage, Progress, ReclassifyResult, Stage, Task, TaskResult};
use lkr_domain::{DocId, Document};
use lkr_taxonomy::{Classified, ClassifierInput};

use crate::{
    Error, ErrorKind, Result, change, collection_sets::CollectionSets, fill::own_vector, ingestor::Inner,
    pipeline::Report,
};

/// How many documents are listed at a time.
const PAGE: usize = 100;

/// What a task says where categories could not be asked for.
const NO_CATEGORY: &str = "the category could not be found out";

/// The vector of a document, and the id of the model that made it.
pub(crate) type Vector<'a> = (&'a [f32], &'a str);

/// The category of a document; an empty name for none.
#[derive(Debug, Default)]
pub(crate) struct Category {
    pub(crate) name: String,
    /// What a language model was asked for it.
    pub(crate) usage: ModelUsage,
    pub(crate) warning: Option<String>,
}

/// The category of a document with this vector. A classifier that fails leaves the document without, and a warning: that
/// is no reason to refuse it.
pub(crate) async fn category_of(inner: &Inner, document: &Document, vector: Option<Vector<'_>>) -> Category {
    match ask(inner, document, vector).await {
        Ok(found) => Category {
            usage: ModelUsage { calls: found.calls, tokens: found.tokens },
            warning: found.warning,
            name: found.verdict.map(|verdict| verdict.name).unwrap_or_default(),
        },
        Err(error) => {
            tracing::warn!(doc_id = %document.doc_id, %error, "a document could not be classified");
            Category { warning: Some(format!("{NO_CATEGORY}: {error}")), ..Category::default() }
        }
    }
}

async fn ask(inner: &Inner, document: &Document, vector: Option<Vector<'_>>) -> Result<Classified> {
    let blind = Classified { blind: true, ..Classified::default() };
    let Some(classifier) = &inner.ports.classifier else { return Ok(blind) };
    let Document { title, summary, keywords, .. } = document;
    let (vector, model) = vector.unzip();
    let digest = ClassifierInput { title, summary, keywords, vector, model };
    Ok(classifier.classify(&digest).await?)
}

/// Gives a document that has got its vectors the category that it could not have without.
pub(crate) async fn catch_up(inner: &Inner, document: &Document, vector: Option<Vector<'_>>) -> Result<()> {
    if document.category_by_hand || !document.category.is_empty() {
        return Ok(());
    }
    let category = category_of(inner, document, vector).await.name;
    if !category.is_empty() {
        change::categorise(inner, document.doc_id, &category).await?;
    }
    Ok(())
}

/// Classifies every live document, and ends the task. Each one is shown with its new category at once.
pub(crate) async fn reclassify(
    inner: &Inner,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let begun = Instant::now();
    let total = inner.ports.catalog.stats().await?.counts.l1;
    report.send_replace((Stage::Classify, Progress { done: 0, total }));
    let mut result = ReclassifyResult::default();
    let mut after: Option<DocId> = None;
    let mut blind = false;
    loop {
        let page = inner.ports.catalog.list(&ListFilter::default(), after, PAGE).await?;
        for document in &page.items {
            blind |= classify_again(inner, document, &mut result).await?;
            let progress = Progress { done: result.documents, total: total.max(result.documents) };
            report.send_replace((Stage::Classify, progress));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if blind && inner.ports.embedders.embedders().is_empty() {
        result.warnings.push("no embedding model: no category can be found until there is one".to_owned());
    }
    result.elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let done = task.done(Stage::Classify, result.documents, TaskResult::Reclassified(result));
    Ok(inner.ports.catalog.end(active, &done).await?)
}

/// Classifies a document again, and answers whether that could not be done for want of a vector.
async fn classify_again(inner: &Inner, document: &Document, result: &mut ReclassifyResult) -> Result<bool> {
    result.documents += 1;
    if document.category_by_hand {
        result.by_hand += 1;
        return Ok(false);
    }
    let vector = vector_of(inner, document).await?;
    let vector = vector.as_ref().map(|(vector, model)| (vector.as_slice(), model.as_str()));
    let found = match ask(inner, document, vector).await {
        Err(error) if !error.is_retryable() => {
            result.uncategorized += u64::from(document.category.is_empty());
            result.warn(format!("{}: {NO_CATEGORY}: {error}", document.doc_id));
            return Ok(false);
        }
        asked => asked?,
    };
    result.usage.calls += found.calls;
    result.usage.tokens += found.tokens;
    if let Some(warning) = found.warning {
        result.warn(format!("{}: {warning}", document.doc_id));
    }
    if found.blind {
        // What has no vector yet is classified when it gets one; what it has until then stays.
        result.uncategorized += u64::from(document.category.is_empty());
        return Ok(true);
    }
    let category = found.verdict.map(|verdict| verdict.name).unwrap_or_default();
    result.uncategorized += u64::from(category.is_empty());
    result.changed += u64::from(change::categorise(inner, document.doc_id, &category).await?);
    Ok(false)
}

/// The document's own vector, where it has one, and the model that made it.
async fn vector_of(inner: &Inner, document: &Document) -> Result<Option<(Vec<f32>, String)>> {
    let embedders = &inner.ports.embedders;
    if embedders.embedders().is_empty() {
        return Ok(None);
    }
    let live = CollectionSets::live_model(&*inner.ports.vectors).await?;
    let Some(model) = live.filter(|live| embedders.embedder_of(live).is_some()) else {
        let reason = "documents are being embedded anew; their categories can be found when that is done";
        return Err(Error::new(ErrorKind::ModelAway, "reclassify", reason));
    };
    Ok(own_vector(inner, &model, document).await?.map(|vector| (vector, model)))
}
