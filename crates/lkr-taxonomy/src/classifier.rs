use std::fmt::Debug;

use async_trait::async_trait;

use crate::Result;

/// What a classifier sees of a document.
#[derive(Debug, Clone, Copy)]
pub struct ClassifierInput<'a> {
    /// The document's title.
    pub title: &'a str,
    /// Its summary.
    pub summary: &'a str,
    /// Its keywords.
    pub keywords: &'a [String],
    /// Its own dense vector, where it has one: the mean of its chunks' vectors, scaled to length 1.
    pub vector: Option<&'a [f32]>,
    /// The id of the model that made the vector.
    pub model: Option<&'a str>,
}

/// A category for a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    /// The name of the category.
    pub name: String,
    /// How sure it is: the higher, the surer; comparable among the verdicts of one classifier alone.
    pub score: f32,
}

/// What a classifier made of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Classified {
    /// The category that fits, if one does.
    pub verdict: Option<Classification>,
    /// Whether it could tell nothing for want of a vector.
    pub blind: bool,
    /// What a language model was asked for it: requests, and tokens in and out.
    pub calls: u64,
    /// See [`calls`](Self::calls).
    pub tokens: u64,
    /// What whoever sent the document should know.
    pub warning: Option<String>,
}

impl From<Option<Classification>> for Classified {
    fn from(verdict: Option<Classification>) -> Self {
        Self { verdict, ..Self::default() }
    }
}

/// Finds the category of a document.
#[async_trait]
pub trait Classifier: Debug + Send + Sync + 'static {
    /// What changes where answers may: the model, the taxonomy, the method.
    fn id(&self) -> String;

    /// The category of a document, if one fits.
    async fn classify(&self, digest: &ClassifierInput<'_>) -> Result<Classified>;
}
