//! Categories by nearness, whatever model made the document's vector.

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

/// Takes the category whose text is nearest to the document, under the model that made the document's vector.
#[derive(Debug)]
pub(crate) struct NearCategories {
    taxonomy: Taxonomy,
    embedders: Arc<dyn EmbedderSource>,
    /// By the ids of their models.
    classifiers: Mutex<HashMap<String, Arc<SimilarityClassifier>>>,
}

impl NearCategories {
    pub(crate) fn new(taxonomy: Taxonomy, embedders: Arc<dyn EmbedderSource>) -> Self {
        Self { taxonomy, embedders, classifiers: Mutex::default() }
    }

    /// The classifier for vectors of a model that can be had.
    fn of(&self, model: &str) -> Option<Arc<SimilarityClassifier>> {
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
impl Classifier for NearCategories {
    fn id(&self) -> String {
        format!("nearest of {}", self.taxonomy.fingerprint())
    }

    /// Needs the vector of the document.
    async fn classify(&self, input: &ClassifierInput<'_>) -> Result<ClassifierOutput> {
        let (Some(_), Some(model)) = (input.vector, input.model) else {
            return Ok(ClassifierOutput { needs_vector: true, ..ClassifierOutput::default() });
        };
        let unavailable =
            || Error::new(ErrorKind::ModelUnavailable, "classify", format!("model {model} is unavailable"));
        self.of(model).ok_or_else(unavailable)?.classify(input).await
    }
}
