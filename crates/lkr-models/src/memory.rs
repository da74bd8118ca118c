use async_trait::async_trait;

use crate::{EmbedKind, Embedder, EmbedderProfile, REFERENCE_SCALE, Result};

const DIMS: usize = 64;
const MAX_WORDS: usize = 512;

/// An embedder without a model: texts that share words have similar vectors.
///
/// Each word's hash determines a direction, and a text's vector is the normalized sum over its words. Two texts without
/// a common word have a cosine of about 0 ± 1/√dims. Vectors are the same on every machine and in every version. For
/// tests and examples.
#[derive(Debug, Clone)]
pub struct MemoryEmbedder {
    profile: EmbedderProfile,
}

impl MemoryEmbedder {
    /// An embedder with 64 dimensions.
    #[must_use]
    pub fn new() -> Self {
        Self::with_dims(DIMS)
    }

    /// An embedder with `dims` dimensions, at least one.
    #[must_use]
    pub fn with_dims(dims: usize) -> Self {
        let dims = dims.max(1);
        let profile = EmbedderProfile {
            id: format!("memory-{dims}"),
            name: "hashed words".to_owned(),
            dims,
            max_tokens: MAX_WORDS,
            cosine_scale: Some(REFERENCE_SCALE),
            precision: None,
        };
        Self { profile }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.profile.dims];
        for word in words(text).take(MAX_WORDS) {
            let mut state = hash(&word);
            for block in sum.chunks_mut(64) {
                let signs = next(&mut state);
                for (bit, value) in block.iter_mut().enumerate() {
                    *value += if signs >> bit & 1 == 1 { 1.0 } else { -1.0 };
                }
            }
        }
        unit(&sum)
    }
}

impl Default for MemoryEmbedder {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Embedder for MemoryEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, _kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }

    fn letters_per_piece(&self, _text: &str) -> Option<f32> {
        None
    }
}

/// The words of a text in lower case. From U+2E80 on, roughly where the scripts without spaces begin, each character is
/// a word.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_unspaced = |c: char| c >= '\u{2e80}';
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.flat_map(move |run| run.split_inclusive(is_unspaced))
        .flat_map(move |run| {
            let unspaced = run.char_indices().next_back().filter(|(_, c)| is_unspaced(*c));
            let word_end = unspaced.map_or(run.len(), |(at, _)| at);
            let (word, character) = run.split_at_checked(word_end).unwrap_or((run, ""));
            [word, character]
        })
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// FNV-1a, 64 bits.
fn hash(word: &str) -> u64 {
    word.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The next number of SplitMix64.
const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The vector scaled to length 1; the first axis if all components are 0.
fn unit(sum: &[f32]) -> Vec<f32> {
    let length = sum.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        return sum.iter().map(|value| (f64::from(*value) / length) as f32).collect();
    }
    let mut axis = vec![0.0; sum.len()];
    axis.iter_mut().take(1).for_each(|value| *value = 1.0);
    axis
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn embedder() -> (Arc<dyn Embedder>, ()) {
        (Arc::new(MemoryEmbedder::new()), ())
    }

    async fn odd_dimensions_embedder() -> (Arc<dyn Embedder>, ()) {
        (Arc::new(MemoryEmbedder::with_dims(101)), ())
    }

    crate::embedder_suite!(embedder());

    mod odd_dimensions {
        crate::embedder_suite!(super::odd_dimensions_embedder());
    }

    fn cosine(a: &str, b: &str) -> f32 {
        let embedder = MemoryEmbedder::new();
        embedder.vector(a).iter().zip(embedder.vector(b)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn more_shared_words_give_a_higher_cosine() {
        let all = cosine("the cat sat", "Sat THE cat!");
        let most = cosine("the cat sat down", "the cat sat up");
        let none = cosine("the cat sat", "quarterly revenue forecast");
        assert!(all > 0.9999 && most > 0.5 && none < 0.4, "{all} {most} {none}");
    }

    #[test]
    fn words_split_at_punctuation_and_at_unspaced_characters() {
        let split = |text| words(text).collect::<Vec<_>>();
        assert_eq!(split("Don't  STOP—été 3.5"), ["don", "t", "stop", "été", "3", "5"]);
        assert_eq!(split("日本語abc語 x"), ["日", "本", "語", "abc", "語", "x"]);
        assert_eq!(split(" \n…!"), Vec::<String>::new());
    }

    #[test]
    fn words_beyond_the_maximum_are_ignored() {
        let text = "word ".repeat(MAX_WORDS);
        assert_eq!(MemoryEmbedder::new().vector(&text), MemoryEmbedder::new().vector(&(text + "other")));
    }

    #[test]
    fn vectors_are_stable_across_versions() {
        // Stored vectors outlive a version, so these numbers must never change.
        let vector = MemoryEmbedder::with_dims(4).vector("stable");
        assert_eq!(vector, [-0.5, -0.5, 0.5, 0.5]);
        assert_eq!(MemoryEmbedder::with_dims(3).vector(""), [1.0, 0.0, 0.0]);
        assert_eq!(MemoryEmbedder::with_dims(0).profile().dims, 1);
    }
}
