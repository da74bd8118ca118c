use std::sync::Arc;

use async_trait::async_trait;
use lkr_models::{EmbedKind, Embedder};
use tokio::sync::OnceCell;

use crate::{
    Category, Classification, Classifier, ClassifierInput, ClassifierOutput, Error, ErrorKind, Result,
    Taxonomy,
};

/// The version of the method and its reference texts. It is part of the classifier's id.
const METHOD: &str = "similarity-1";

/// Texts on unrelated subjects, one per line. Their mean shows what all texts have in common under a model.
const REFERENCE: &str = include_str!("reference.txt");

/// The weight of the reference texts in the centre, in categories.
const REFERENCE_WEIGHT: f32 = 10.0;

/// Options of [`SimilarityClassifier`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SimilarityOptions {
    /// The minimum score of a match: a cosine relative to the centre. A higher threshold leaves more documents
    /// without a category.
    pub threshold: f32,
}

impl Default for SimilarityOptions {
    /// 0.16: with all-MiniLM-L6-v2, nearly all prose and code outside every category score lower, and 48 of 50
    /// pages of a company handbook score higher. The crate documentation has the measurements.
    fn default() -> Self {
        Self { threshold: 0.16 }
    }
}

impl SimilarityOptions {
    /// Sets the threshold.
    #[must_use]
    pub const fn with_threshold(mut self, threshold: f32) -> Self {
        self.threshold = threshold;
        self
    }
}

/// Chooses the category whose text is nearest to the document.
///
/// The score is cos(document − centre, category − centre). Models differ in how similar two arbitrary texts are;
/// subtracting the centre removes what all texts have in common. The centre is the weighted mean of the categories and
/// of reference texts on unrelated subjects, which weigh as much as ten categories. Without the reference texts, a
/// single category would be its own centre. Without the categories, what they share would make them look alike.
#[derive(Debug)]
pub struct SimilarityClassifier {
    taxonomy: Taxonomy,
    embedder: Arc<dyn Embedder>,
    options: SimilarityOptions,
    category_vectors: OnceCell<CategoryVectors>,
}

/// The vectors of the categories relative to the centre.
#[derive(Debug)]
struct CategoryVectors {
    centre: Vec<f32>,
    /// The unit vectors from the centre to each category, in taxonomy order.
    directions: Vec<Vec<f32>>,
}

impl SimilarityClassifier {
    /// Creates a classifier for vectors of `embedder`. It embeds the categories once, when the first document
    /// is classified.
    #[must_use]
    pub fn new(taxonomy: Taxonomy, embedder: Arc<dyn Embedder>, options: SimilarityOptions) -> Self {
        Self { taxonomy, embedder, options, category_vectors: OnceCell::new() }
    }

    /// All categories with their scores for a document vector, best first. Ties keep the taxonomy order.
    pub async fn rank(&self, vector: &[f32]) -> Result<Vec<Classification>> {
        let category_vectors = self.category_vectors.get_or_try_init(|| self.embed_categories()).await?;
        if vector.len() != category_vectors.centre.len() {
            let message = format!(
                "the document vector has {} dimensions, the category vectors have {}",
                vector.len(),
                category_vectors.centre.len()
            );
            return Err(Error::new(ErrorKind::Internal, "classify", message));
        }
        let direction = direction(&category_vectors.centre, vector);
        let names = self.taxonomy.categories().iter().map(|category| category.name.clone());
        let scores = category_vectors.directions.iter().map(|category| dot(category, &direction));
        let mut ranked: Vec<_> =
            names.zip(scores).map(|(name, score)| Classification { name, score }).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(ranked)
    }

    async fn embed_categories(&self) -> Result<CategoryVectors> {
        let category_texts = self.taxonomy.categories().iter().map(embedded_text);
        let texts: Vec<String> = REFERENCE.lines().map(Into::into).chain(category_texts).collect();
        let vectors = self.embedder.embed(EmbedKind::Passage, &texts).await?;
        let (reference, category_vectors) =
            vectors.split_at_checked(REFERENCE.lines().count()).unwrap_or_default();
        let dims = self.embedder.profile().dims;
        let reference_share = REFERENCE_WEIGHT / (REFERENCE_WEIGHT + category_vectors.len() as f32);
        let pairs = mean(reference, dims).into_iter().zip(mean(category_vectors, dims));
        let centre: Vec<f32> =
            pairs.map(|(reference, category)| category + reference_share * (reference - category)).collect();
        let directions = category_vectors.iter().map(|vector| direction(&centre, vector)).collect();
        Ok(CategoryVectors { centre, directions })
    }
}

#[async_trait]
impl Classifier for SimilarityClassifier {
    fn id(&self) -> String {
        let (model, taxonomy) = (&self.embedder.profile().id, self.taxonomy.fingerprint());
        format!("{METHOD} {model} {taxonomy} {}", self.options.threshold)
    }

    /// A document without a vector gets no category and `needs_vector`.
    async fn classify(&self, input: &ClassifierInput<'_>) -> Result<ClassifierOutput> {
        let Some(vector) = input.vector else {
            return Ok(ClassifierOutput { needs_vector: true, ..ClassifierOutput::default() });
        };
        let best = self.rank(vector).await?.into_iter().next();
        Ok(best.filter(|best| best.score >= self.options.threshold).into())
    }
}

/// The text that is embedded for a category.
fn embedded_text(category: &Category) -> String {
    let Category { name, description, keywords, .. } = category;
    [name.as_str(), description, &keywords.join(", ")].join("\n").trim_end().to_owned()
}

fn mean(vectors: &[Vec<f32>], dims: usize) -> Vec<f32> {
    let mut sum = vec![0.0; dims];
    for vector in vectors {
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    let count = vectors.len().max(1) as f32;
    sum.iter_mut().for_each(|value| *value /= count);
    sum
}

/// The unit vector from `centre` to `vector`; the zero vector if they are equal.
fn direction(centre: &[f32], vector: &[f32]) -> Vec<f32> {
    let difference: Vec<f32> = vector.iter().zip(centre).map(|(value, centre)| value - centre).collect();
    let length = dot(&difference, &difference).sqrt();
    let scale = if length > f32::EPSILON { length.recip() } else { 0.0 };
    difference.into_iter().map(|value| value * scale).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
