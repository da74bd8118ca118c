//! Copies of documents with slightly different texts and vectors, for building a large knowledge base without embedding every
//! text.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    iter,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use lkr::ports::{EmbedKind, Embedder};
use lkr_models::{EmbedderProfile, Result};

use crate::{bench::random::XorShift64, collection::Input};

/// The largest noise in each dimension of a copy's vector. In 384 dimensions, the cosine with the original is about
/// .94.
const NOISE: f32 = 0.03;

/// The text before the number of a copy in its title.
const COPY_MARK: &str = " (copy ";

/// One of so many words of a copy that could be another one is another one.
const OTHER_WORD: u64 = 4;

/// Documents, and copies of them in which a part of the lower-case words are other words of the documents, as frequent there, of the
/// same length. So the passages of a copy are as long as their originals, and match a query a little better or worse.
#[derive(Debug)]
pub(super) struct Copies {
    inputs: Vec<Input>,
    /// The words of all documents, each as often as it occurs, by length.
    words: HashMap<usize, Vec<String>>,
}

impl Copies {
    pub(super) fn of(inputs: Vec<Input>) -> Self {
        let mut words: HashMap<usize, Vec<String>> = HashMap::new();
        let all = inputs.iter().flat_map(|input| parts(&input.text));
        for word in all.filter_map(exchangeable_word) {
            words.entry(word.len()).or_default().push(word.to_owned());
        }
        Self { inputs, words }
    }

    /// The number of documents.
    pub(super) fn count(&self) -> usize {
        self.inputs.len()
    }

    /// Tells whether a source is that of one of the documents, or of a copy.
    pub(super) fn sources(&self) -> impl Fn(&str) -> bool {
        let originals: HashSet<&str> = self.inputs.iter().map(|input| input.source.as_str()).collect();
        move |source| {
            let copied = source.rsplit_once('#').filter(|(_, n)| n.parse::<usize>().is_ok());
            originals.contains(source) || copied.is_some_and(|(original, _)| originals.contains(original))
        }
    }

    /// Copy `n` of all documents; for 0 the documents themselves.
    pub(super) fn copy(&self, n: usize) -> impl Iterator<Item = Input> {
        self.inputs.iter().map(move |input| self.copy_of(input, n))
    }

    /// Those of copy `n` whose sources are not `stored`.
    pub(super) fn missing(&self, n: usize, stored: &HashSet<String>) -> Vec<Input> {
        let missing = self.inputs.iter().filter(|input| !stored.contains(&source_of(input, n)));
        missing.map(|input| self.copy_of(input, n)).collect()
    }

    fn copy_of(&self, input: &Input, n: usize) -> Input {
        let Input { title, text, .. } = input.clone();
        let source = source_of(input, n);
        if n == 0 {
            return Input { title, source, text };
        }
        let mut random = XorShift64::new(hash(&source));
        let text = parts(&text).map(|part| self.exchanged(part, &mut random)).collect();
        Input { title: format!("{title}{COPY_MARK}{n})"), source, text }
    }

    /// A part of a text, or another word in its place.
    fn exchanged<'a>(&'a self, part: &'a str, random: &mut XorShift64) -> Cow<'a, str> {
        let Some(own) = exchangeable_word(part).filter(|_| random.next().is_multiple_of(OTHER_WORD)) else {
            return Cow::Borrowed(part);
        };
        let words = self.words.get(&own.len()).map_or(&[][..], Vec::as_slice);
        let at = random.next() % (words.len().max(1) as u64);
        words.get(at as usize).map_or(Cow::Borrowed(part), |word| Cow::Owned(format!("{word} ")))
    }
}

/// The source of copy `n` of a document.
fn source_of(input: &Input, n: usize) -> String {
    if n == 0 { input.source.clone() } else { format!("{}#{n}", input.source) }
}

/// The parts of a text, each with the character that ends it: a space or the end of a line.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '\n'])
}

/// The lower-case word that a part of a text is, before a space, so that neither markup nor sentences change with it.
fn exchangeable_word(part: &str) -> Option<&str> {
    let is_lower_case = |word: &str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    part.strip_suffix(' ').filter(|word| is_lower_case(word))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Embeds each passage of the documents once, and derives the vectors of its copies by adding noise. Equal texts have equal vectors. A
/// passage that is embedded for the first time is taken for an original, so the documents come before their copies.
#[derive(Debug)]
pub(super) struct CopyEmbedder {
    inner: Arc<dyn Embedder>,
    /// By the hash of the [`outline`].
    vectors: Mutex<HashMap<u64, Vec<f32>>>,
}

impl CopyEmbedder {
    pub(super) fn new(inner: Arc<dyn Embedder>) -> Self {
        Self { inner, vectors: Mutex::default() }
    }

    fn cached(&self, outline: u64) -> Option<Vec<f32>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).get(&outline).cloned()
    }
}

#[async_trait]
impl Embedder for CopyEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Query {
            return self.inner.embed(kind, texts).await;
        }
        let outlines: Vec<u64> = texts.iter().map(|text| hash(outline(text))).collect();
        let mut seen = HashSet::new();
        let mut is_new = |outline: u64| self.cached(outline).is_none() && seen.insert(outline);
        let (new, uncached): (Vec<u64>, Vec<String>) = iter::zip(&outlines, texts)
            .filter(|(outline, _)| is_new(**outline))
            .map(|(outline, text)| (*outline, original(text)))
            .unzip();
        let vectors = self.inner.embed(kind, &uncached).await?;
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).extend(new.into_iter().zip(vectors));
        let of = |(text, outline): (&String, u64)| with_noise(text, self.cached(outline).unwrap_or_default());
        Ok(iter::zip(texts, outlines).map(of).collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// The original of a copy, or the text itself. The number of a copy is at the end of the first line.
fn original(text: &str) -> String {
    let (title, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let title = title.rsplit_once(COPY_MARK).map_or(title, |(title, _)| title);
    format!("{title}{rest}")
}

/// What a text and its copies have in common: the original with any lower-case letters.
fn outline(text: &str) -> String {
    original(text).replace(|letter: char| letter.is_ascii_lowercase(), "x")
}

/// The vector of a text, with noise if it is a copy.
fn with_noise(text: &str, vector: Vec<f32>) -> Vec<f32> {
    if original(text) == text {
        return vector;
    }
    let mut random = XorShift64::new(hash(text));
    let noisy: Vec<f32> = vector.into_iter().map(|value| value + NOISE * random.around_zero()).collect();
    let length = noisy.iter().map(|value| value * value).sum::<f32>().sqrt();
    noisy.into_iter().map(|value| value / length).collect()
}

#[cfg(test)]
mod tests {
    use lkr_models::MemoryEmbedder;

    use super::*;

    fn moons() -> Copies {
        let text = "# about moons\n\nThe moons of other planets are small, and few have air; some melt, https://moons.org says.\n";
        Copies::of(vec![Input { title: "Moons".into(), source: "moons".into(), text: text.repeat(9) }])
    }

    #[test]
    fn copies_have_other_words_of_the_same_length() {
        let copies = moons();
        let [original, first, again, second] = [0, 1, 1, 2].map(|n| copies.copy(n).next().unwrap());
        assert_eq!((original.title.as_str(), original.source.as_str()), ("Moons", "moons"));
        assert_eq!((first.title.as_str(), first.source.as_str()), ("Moons (copy 1)", "moons#1"));
        assert_eq!(first.text, again.text);
        assert_ne!(first.text, second.text);
        let pairs = || original.text.split(' ').zip(first.text.split(' '));
        assert!(pairs().all(|(word, other)| word.len() == other.len()));
        let changed: Vec<_> = pairs().filter(|(word, other)| word != other).map(|(word, _)| word).collect();
        assert!((3..60).contains(&changed.len()), "{changed:?}");
        assert!(
            changed
                .iter()
                .all(|word| ["about", "moons", "other", "planets", "are", "and", "few", "have", "some"]
                    .contains(word)),
            "{changed:?}"
        );
    }

    #[tokio::test]
    async fn copies_have_vectors_near_their_originals() {
        let copies = moons();
        let texts = [0, 1, 2, 1]
            .map(|n| copies.copy(n).next().map(|of| format!("{}\n{}", of.title, of.text)).unwrap());
        let embedder = CopyEmbedder::new(Arc::new(MemoryEmbedder::new()));
        let vectors = embedder.embed(EmbedKind::Passage, &texts).await.unwrap();
        let original_vectors = MemoryEmbedder::new().embed(EmbedKind::Passage, &texts[..1]).await.unwrap();
        assert_eq!(vectors[0], original_vectors[0]);
        assert_eq!(vectors[1], vectors[3]);
        assert_ne!(vectors[1], vectors[2]);
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((cosine(&vectors[1], &vectors[1]) - 1.0).abs() < 1e-5);
        assert!(cosine(&vectors[0], &vectors[1]) > 0.9, "{}", cosine(&vectors[0], &vectors[1]));
    }
}
