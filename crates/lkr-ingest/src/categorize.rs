//! Finding the category of one document.

use lkr_catalog::ModelUsage;
use lkr_domain::Document;
use lkr_taxonomy::{ClassifierInput, ClassifierOutput};

use crate::{Ports, Result, change::set_category, pending_changes::PendingChanges};

/// Why a document has no category: the classifier failed.
pub(crate) const CLASSIFICATION_FAILED: &str = "the category could not be determined";

/// The vector of a document, and the id of the model that made it.
pub(crate) type DocumentVector<'a> = (&'a [f32], &'a str);

/// The category of a document; an empty name for none.
#[derive(Debug, Default)]
pub(crate) struct FoundCategory {
    pub(crate) name: String,
    /// The requests to a language model.
    pub(crate) usage: ModelUsage,
    pub(crate) warning: Option<String>,
}

/// Finds the category of a document. If the classifier fails, the document has no category and a warning: that does not
/// fail the document.
pub(crate) async fn find_category(
    ports: &Ports,
    document: &Document,
    vector: Option<DocumentVector<'_>>,
) -> FoundCategory {
    match classify(ports, document, vector).await {
        Ok(classified) => FoundCategory {
            usage: ModelUsage { calls: classified.calls, tokens: classified.tokens },
            warning: classified.warning,
            name: classified.classification.map(|category| category.name).unwrap_or_default(),
        },
        Err(error) => {
            tracing::warn!(doc_id = %document.doc_id, %error, "cannot classify a document; it has no category");
            let warning = Some(format!("{CLASSIFICATION_FAILED}: {error}"));
            FoundCategory { warning, ..FoundCategory::default() }
        }
    }
}

/// Asks the classifier.
pub(crate) async fn classify(
    ports: &Ports,
    document: &Document,
    vector: Option<DocumentVector<'_>>,
) -> Result<ClassifierOutput> {
    let Some(classifier) = &ports.classifier else {
        return Ok(ClassifierOutput { needs_vector: true, ..ClassifierOutput::default() });
    };
    let Document { title, summary, keywords, .. } = document;
    let (vector, model) = vector.unzip();
    let input = ClassifierInput { title, summary, keywords, vector, model };
    Ok(classifier.classify(&input).await?)
}

/// Gives a live document without a category the one that needed its vector.
pub(crate) async fn categorize_late(
    ports: &Ports,
    changes: &PendingChanges,
    document: &Document,
    vector: Option<DocumentVector<'_>>,
) -> Result<()> {
    if document.category_by_hand || !document.category.is_empty() {
        return Ok(());
    }
    let category = find_category(ports, document, vector).await.name;
    if !category.is_empty() {
        set_category(ports, changes, document.doc_id, &category).await?;
    }
    Ok(())
}
