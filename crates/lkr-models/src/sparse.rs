use std::collections::HashMap;

use lkr_domain::{Layer, SparseVector};
use lkr_text::{Analyzer, Language, query_terms};

/// Turns texts into the term weights of BM25, so that the score of a passage for a query is the dot product of their
/// vectors with the inverse document frequency of each term, which the store supplies:
///
/// score = Σ idf(t) · query(t) · passage(t), idf(t) = ln(1 + (N − n + ½) / (n + ½)).
///
/// A term's id is 32 bits of its hash: the 64-bit FNV-1a of its UTF-8 bytes, its two halves folded by exclusive or.
/// Ids are stored, so neither the hash nor the analysis in `lkr-text` may change without a new index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseEncoder {
    /// How soon a repeated term stops adding: 1.2 by default.
    pub k1: f32,
    /// How much longer passages are held back, from 0 to 1: 0.75 by default.
    pub b: f32,
}

impl Default for SparseEncoder {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

impl SparseEncoder {
    /// The vector of a passage in `language`, in a collection whose passages have `average_terms` terms in the mean,
    /// were they in English: Chinese and its like have more terms in as much text, and the average is raised by that.
    ///
    /// The weight of a term that occurs tf times among len terms is
    /// tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / average)). An average below 1 counts as 1.
    #[must_use]
    pub fn passage(&self, text: &str, language: Option<Language>, average_terms: f32) -> SparseVector {
        let mut frequencies: HashMap<u32, f32> = HashMap::new();
        let mut length = 0.0_f32;
        Analyzer::new(language).for_each(text, |term, _| {
            *frequencies.entry(term_id(&term)).or_default() += 1.0;
            length += 1.0;
        });
        let average = (average_terms * density(language)).max(1.0);
        let norm = self.k1 * (1.0 - self.b + self.b * length / average);
        let weight = |tf: f32| tf * (self.k1 + 1.0) / (tf + norm);
        SparseVector::from_pairs(frequencies.into_iter().map(|(id, tf)| (id, weight(tf))))
    }

    /// The vector of a query: each term with how much it counts, summed over its occurrences.
    #[must_use]
    pub fn query(&self, text: &str) -> SparseVector {
        SparseVector::from_pairs(query_terms(text).into_iter().map(|term| (term_id(&term.term), term.weight)))
    }
}

/// How many terms as much text has as makes one in English, where scripts without spaces become pairs of characters,
/// and Chinese characters also terms of their own: the means over chunks of 200 tokens of cmrc2018 (281) and
/// jaquad_dev (209) by that of English (78).
fn density(language: Option<Language>) -> f32 {
    match language.map_or("", Language::code) {
        "zh" => 3.6,
        "ja" => 2.7,
        "ko" | "th" | "km" | "my" => 1.8,
        _ => 1.0,
    }
}

/// The id of a term in sparse vectors.
#[must_use]
pub fn term_id(term: &str) -> u32 {
    let hash = term.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

/// The mean number of terms of the English texts of a layer, title and heading path included (L1: of whole documents).
///
/// Constants rather than running means, so that a passage's vector never depends on what else is stored. Rounded from
/// the means over the layers of gitlab_handbook (L1 3118, L2 346, L3 139, chunks 68), product_docs (2096, 365, 179,
/// 74) and scifact (154, 154, 152, 89); L1, whose means lie so far apart, from the geometric one of the extremes.
#[must_use]
pub const fn average_terms(layer: Layer) -> f32 {
    match layer {
        Layer::L1 => 700.0,
        Layer::L2 => 300.0,
        Layer::L3 => 160.0,
        Layer::Chunks => 80.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_bm25() {
        let encoder = SparseEncoder::default();
        let passage = encoder.passage("moon moon orbit", Some(Language::ENGLISH), 3.0);
        let weight = |term| passage.iter().find(|(id, _)| *id == term_id(term)).map(|(_, weight)| weight);
        assert_eq!(passage.len(), 2);
        assert_eq!(weight("orbit"), Some(1.0));
        assert_eq!(weight("moon"), Some(2.0 * 2.2 / (2.0 + 1.2)));
        let longer = encoder.passage("moon moon orbit", Some(Language::ENGLISH), 1.0);
        assert!(longer.values().iter().zip(passage.values()).all(|(long, mean)| long < mean));
        // Six characters are eleven terms, as much as three words.
        let chinese = encoder.passage("木星卫队轨道", Some(Language::CHINESE), 3.0);
        assert!(chinese.len() == 11 && chinese.values().iter().all(|weight| (0.95..1.05).contains(weight)));
    }

    #[test]
    fn queries_meet_passages() {
        let encoder = SparseEncoder::default();
        let meets = |query: &str, text: &str, language: &str| {
            let passage = encoder.passage(text, Language::from_code(language), 10.0);
            encoder.query(query).indices().iter().any(|id| passage.indices().contains(id))
        };
        assert!(meets("volcano", "Volcanoes erupt.", "en"));
        assert!(meets("Schwester", "Die sieben Schwestern", "de"));
        assert!(meets("東京", "東京タワーは高い", "ja"));
        assert!(meets("err-1001", "It fails with ERR-1001.", "en"));
        assert!(!meets("planet", "Volcanoes erupt.", "en"));
        assert!(encoder.query("?!").is_empty() && encoder.passage("", None, 0.0).is_empty());
    }

    #[test]
    fn ids_are_stable() {
        // The 64-bit FNV-1a of "a" is af63dc4c8601ec8c.
        assert_eq!(term_id("a"), 0xaf63_dc4c ^ 0x8601_ec8c);
        assert_eq!(term_id(""), 0xcbf2_9ce4 ^ 0x8422_2325);
    }
}
