//! Classification by embedding similarity, with the model that produced the document's vector.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use lkr_models::EmbedderSource;
use lkr_taxonomy::{
    Classifier, ClassifierInput, ClassifierOutput, Error, ErrorKind, Result, SimilarityClassifier,
    SimilarityOptions, Taxonomy,
};

/// Picks the category whose description is most similar to the document, by the model that produced the document's
/// vector.
#[derive(Debug)]
pub(crate) struct EmbeddingClassifier {
    taxonomy: Taxonomy,
    embedders: Arc<dyn EmbedderSource>,
    /// By model id.
    classifiers: Mutex<HashMap<String, Arc<SimilarityClassifier>>>,
}

impl EmbeddingClassifier {
    pub(crate) fn new(taxonomy: Taxonomy, embedders: Arc<dyn EmbedderSource>) -> Self {
        Self { taxonomy, embedders, classifiers: Mutex::default() }
    }

    /// The classifier for vectors of a model; `None` if the model is not available.
    fn classifier_for(&self, model: &str) -> Option<Arc<SimilarityClassifier>> {
        let embedder = self.embedders.embedder_of(model)?;
        let mut classifiers = self.classifiers.lock().unwrap_or_else(PoisonError::into_inner);
        classifiers.retain(|model, _| self.embedders.embedder_of(model).is_some());
        let new = || {
            let options = SimilarityOptions::default();
            Arc::new(SimilarityClassifier::new(self.taxonomy.clone(), embedder, options))
        };
        Some(Arc::clone(classifiers.entry(model.to_owned()).or_insert_with(new)))
    }
}

#[async_trait]
impl Classifier for EmbeddingClassifier {
    fn id(&self) -> String {
        format!("nearest of {}", self.taxonomy.fingerprint())
    }

    async fn classify(&self, input: &ClassifierInput<'_>) -> Result<ClassifierOutput> {
        let (Some(_), Some(model)) = (input.vector, input.model) else {
            return Ok(ClassifierOutput { needs_vector: true, ..ClassifierOutput::default() });
        };
        let unavailable =
            || Error::new(ErrorKind::ModelUnavailable, "classify", format!("model {model} is unavailable"));
        self.classifier_for(model).ok_or_else(unavailable)?.classify(input).await
    }
}
