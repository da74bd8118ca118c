use std::fmt::Debug;

use async_trait::async_trait;

use crate::Result;

/// The parts of a document that a classifier uses.
#[derive(Debug, Clone, Copy)]
pub struct ClassifierInput<'a> {
    /// The document's title.
    pub title: &'a str,
    /// Its summary.
    pub summary: &'a str,
    /// Its keywords.
    pub keywords: &'a [String],
    /// The document's dense vector, if it has one: the mean of its chunk vectors, scaled to length 1.
    pub vector: Option<&'a [f32]>,
    /// The id of the model that made the vector.
    pub model: Option<&'a str>,
}

/// A category and its score for one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    /// The category's name.
    pub name: String,
    /// The confidence; higher is better. Comparable only between results of the same classifier.
    pub score: f32,
}

/// The result of classifying one document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassifierOutput {
    /// The best category; `None` if no category fits.
    pub classification: Option<Classification>,
    /// Whether the classifier needs a vector and the document has none.
    pub needs_vector: bool,
    /// The number of requests to a language model.
    pub calls: u64,
    /// The input and output tokens of these requests.
    pub tokens: u64,
    /// A warning for the client that sent the document.
    pub warning: Option<String>,
}

impl From<Option<Classification>> for ClassifierOutput {
    fn from(classification: Option<Classification>) -> Self {
        Self { classification, ..Self::default() }
    }
}

/// Finds the category of a document.
#[async_trait]
pub trait Classifier: Debug + Send + Sync + 'static {
    /// Identifies the model, the taxonomy and the method. Two classifiers with the same id return the same results.
    fn id(&self) -> String;

    /// Finds the category of a document.
    async fn classify(&self, input: &ClassifierInput<'_>) -> Result<ClassifierOutput>;
}
