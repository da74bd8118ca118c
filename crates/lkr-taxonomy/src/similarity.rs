use std::sync::Arc;

use async_trait::async_trait;
use lkr_models::{EmbedKind, Embedder};
use tokio::sync::OnceCell;

use crate::{
    Category, Classification, Classified, Classifier, ClassifierInput, Error, ErrorKind, Result, Taxonomy,
};

/// Changes with the method, its reference included, so that answers of an older one are known as such.
const METHOD: &str = "similarity-1";

/// Texts about this and that, one a line: what any text is like under a model.
const REFERENCE: &str = include_str!("reference.txt");

/// As how many categories the reference counts in the centre.
const REFERENCE_WEIGHT: f32 = 10.0;

/// What the similarity of document and category decides by.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SimilarityOptions {
    /// The least score that makes a category the document's: a cosine, taken from the centre. Higher leaves more
    /// documents without a category.
    pub threshold: f32,
}

impl Default for SimilarityOptions {
    /// 0.16: under all-MiniLM-L6-v2, nearly all prose and code that belong to no category score less, and 48 of 50
    /// pages of a company handbook more. The crate's documentation has the figures.
    fn default() -> Self {
        Self { threshold: 0.16 }
    }
}

impl SimilarityOptions {
    /// The same with another threshold.
    #[must_use]
    pub const fn with_threshold(mut self, threshold: f32) -> Self {
        self.threshold = threshold;
        self
    }
}

/// Takes the category whose text is nearest to the document.
///
/// Both are seen from a centre, because models differ in how near any two texts are to each other: what all texts
/// have in common lies in the centre and falls away. It is the mean of the categories and of a reference, texts about
/// this and that, which counts as much as ten categories. Without the reference, one category would be its own
/// centre; without the categories, what they share would make them all alike.
#[derive(Debug)]
pub struct SimilarityClassifier {
    taxonomy: Taxonomy,
    embedder: Arc<dyn Embedder>,
    options: SimilarityOptions,
    space: OnceCell<Space>,
}

/// The categories as the model sees them.
#[derive(Debug)]
struct Space {
    centre: Vec<f32>,
    /// From the centre to each category, of length 1, in the taxonomy's order.
    directions: Vec<Vec<f32>>,
}

impl SimilarityClassifier {
    /// A classifier into `taxonomy` for vectors of `embedder`. It embeds the categories when the first document
    /// comes, once.
    #[must_use]
    pub fn new(taxonomy: Taxonomy, embedder: Arc<dyn Embedder>, options: SimilarityOptions) -> Self {
        Self { taxonomy, embedder, options, space: OnceCell::new() }
    }

    /// All categories with their scores for a document of this vector, the best first; of equals the earlier in the
    /// taxonomy.
    pub async fn rank(&self, vector: &[f32]) -> Result<Vec<Classification>> {
        let space = self.space.get_or_try_init(|| self.space()).await?;
        if vector.len() != space.centre.len() {
            let message = format!("a vector of {} dimensions, not {}", vector.len(), space.centre.len());
            return Err(Error::new(ErrorKind::Internal, "classify", message));
        }
        let direction = direction(&space.centre, vector);
        let names = self.taxonomy.categories().iter().map(|category| category.name.clone());
        let scores = space.directions.iter().map(|category| dot(category, &direction));
        let mut verdicts: Vec<_> =
            names.zip(scores).map(|(name, score)| Classification { name, score }).collect();
        verdicts.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(verdicts)
    }

    async fn space(&self) -> Result<Space> {
        let categories = self.taxonomy.categories().iter().map(text);
        let texts: Vec<String> = REFERENCE.lines().map(Into::into).chain(categories).collect();
        let vectors = self.embedder.embed(EmbedKind::Passage, &texts).await?;
        let (reference, own) = vectors.split_at_checked(REFERENCE.lines().count()).unwrap_or_default();
        let dims = self.embedder.profile().dims;
        let share = REFERENCE_WEIGHT / (REFERENCE_WEIGHT + own.len() as f32);
        let both = mean(reference, dims).into_iter().zip(mean(own, dims));
        let centre: Vec<f32> = both.map(|(reference, own)| own + share * (reference - own)).collect();
        let directions = own.iter().map(|vector| direction(&centre, vector)).collect();
        Ok(Space { centre, directions })
    }
}

#[async_trait]
impl Classifier for SimilarityClassifier {
    fn id(&self) -> String {
        let (model, taxonomy) = (&self.embedder.profile().id, self.taxonomy.fingerprint());
        format!("{METHOD} {model} {taxonomy} {}", self.options.threshold)
    }

    /// Blind to a document without a vector.
    async fn classify(&self, digest: &ClassifierInput<'_>) -> Result<Classified> {
        let Some(vector) = digest.vector else {
            return Ok(Classified { blind: true, ..Classified::default() });
        };
        let best = self.rank(vector).await?.into_iter().next();
        Ok(best.filter(|best| best.score >= self.options.threshold).into())
    }
}

/// What stands for a category.
fn text(category: &Category) -> String {
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

/// From `centre` to `vector`, of length 1; nothing where they are the same.
fn direction(centre: &[f32], vector: &[f32]) -> Vec<f32> {
    let away: Vec<f32> = vector.iter().zip(centre).map(|(value, centre)| value - centre).collect();
    let length = dot(&away, &away).sqrt();
    let scale = if length > f32::EPSILON { length.recip() } else { 0.0 };
    away.into_iter().map(|value| value * scale).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
