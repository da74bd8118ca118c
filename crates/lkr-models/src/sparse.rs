use lkr_domain::{Layer, SparseVector};
use lkr_text::{Analyzer, DocumentTerms, Language, QueryTerm, query_terms};

/// Turns texts into BM25 term weights. The score of a passage for a query is the dot product of their vectors, with
/// each term weighted by its inverse document frequency, which the store supplies:
///
/// score = Σ idf(t) · query(t) · passage(t), idf(t) = ln(1 + (N − n + ½) / (n + ½)).
///
/// A term's id has 32 bits: the two halves of the 64-bit FNV-1a of its UTF-8 bytes, combined by exclusive or. Ids are
/// stored, so neither the hash nor the analysis in `lkr-text` may change without a new index.
///
/// See docs/studies.md#bm25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseEncoder {
    /// Term-frequency saturation: the smaller, the less a repeated term adds. 1.2 by default.
    pub k1: f32,
    /// Length normalization, from 0 to 1: the larger, the more a long passage is penalized. 0.75 by default.
    pub b: f32,
}

impl Default for SparseEncoder {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

impl SparseEncoder {
    /// The vector of a passage in `language`. `average_terms` is the mean number of terms of an English passage in the
    /// collection. Languages without spaces have more terms in the same amount of text, so the mean is scaled for them.
    ///
    /// If a term occurs tf times among len terms, its weight is
    /// tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / average)), rounded to a multiple of 2⁻¹⁴, so that a store can keep
    /// it in two bytes. An average below 1 counts as 1.
    #[must_use]
    pub fn passage(&self, text: &str, language: Option<Language>, average_terms: f32) -> SparseVector {
        let mut ids = Vec::new();
        Analyzer::new(language).for_each(text, |term, _| ids.push(term_id(&term)));
        self.weigh(ids, language, average_terms)
    }

    /// The same vector for a part of a document whose words `terms` remembers.
    #[must_use]
    pub fn part(&self, text: &str, terms: &DocumentTerms, average_terms: f32) -> SparseVector {
        let mut ids = Vec::new();
        terms.for_each(text, |term| ids.push(term_id(term)));
        self.weigh(ids, terms.language(), average_terms)
    }

    /// The weights of terms, which are given as often as they occur.
    fn weigh(&self, mut ids: Vec<u32>, language: Option<Language>, average_terms: f32) -> SparseVector {
        let average = (average_terms * term_density(language)).max(1.0);
        let norm = self.k1 * (1.0 - self.b + self.b * ids.len() as f32 / average);
        let weight = |tf: f32| rounded(tf * (self.k1 + 1.0) / (tf + norm));
        ids.sort_unstable();
        let times = ids.chunk_by(|one, other| one == other);
        SparseVector::from_pairs(times.filter_map(|same| Some((*same.first()?, weight(same.len() as f32)))))
    }

    /// The vector of a query: the weight of each term, summed over its occurrences.
    #[must_use]
    pub fn query(&self, text: &str) -> SparseVector {
        self.terms(&query_terms(text))
    }

    /// The vector of a query with these terms.
    #[must_use]
    pub fn terms(&self, terms: &[QueryTerm]) -> SparseVector {
        SparseVector::from_pairs(terms.iter().map(|term| (term_id(&term.term), term.weight)))
    }
}

/// The nearest multiple of 2⁻¹⁴, and not 0.
fn rounded(weight: f32) -> f32 {
    const STEP: f32 = 1.0 / 16_384.0;
    (weight / STEP).round().max(1.0) * STEP
}

/// Terms in a text, relative to English text of the same size. Scripts without spaces are indexed as character bigrams,
/// Chinese also as single characters. Measured as mean terms in chunks of 200 tokens: cmrc2018 281, jaquad_dev 209,
/// English 78.
fn term_density(language: Option<Language>) -> f32 {
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

/// The mean number of terms of the English texts of a layer, including title and heading path (L1: whole documents).
///
/// These are constants, not running means, so that a passage's vector never depends on other stored passages. They are
/// rounded from the layer means of gitlab_handbook (L1 3118, L2 346, L3 139, chunks 68), product_docs (2096, 365, 179,
/// 74) and scifact (154, 154, 152, 89). The means of L1 differ widely, so L1 is the geometric mean of the extremes.
/// See docs/studies.md#bm25.
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
    fn passage_weights_follow_the_bm25_formula() {
        let encoder = SparseEncoder::default();
        let passage = encoder.passage("moon moon orbit", Some(Language::ENGLISH), 3.0);
        let weight = |term| passage.iter().find(|(id, _)| *id == term_id(term)).map(|(_, weight)| weight);
        assert_eq!(passage.len(), 2);
        assert_eq!(weight("orbit"), Some(1.0));
        assert_eq!(weight("moon"), Some(2.0 * 2.2 / (2.0 + 1.2)));
        let longer = encoder.passage("moon moon orbit", Some(Language::ENGLISH), 1.0);
        assert!(longer.values().iter().zip(passage.values()).all(|(long, mean)| long < mean));
        // Six characters make eleven terms, which corresponds to three English words.
        let chinese = encoder.passage("木星卫队轨道", Some(Language::CHINESE), 3.0);
        assert!(chinese.len() == 11 && chinese.values().iter().all(|weight| (0.95..1.05).contains(weight)));
    }

    #[test]
    fn passage_weights_are_multiples_of_a_step() {
        let step = 1.0 / 16_384.0;
        for (weight, nearest) in
            [(1.375, 1.375), (1.0 + 0.4 * step, 1.0), (1.0 + 0.6 * step, 1.0 + step), (step / 9.0, step)]
        {
            assert_eq!(rounded(weight), nearest, "{weight}");
        }
        let text = "moon orbit tide moon ".repeat(7) + "ring moon";
        let passage = SparseEncoder::default().passage(&text, Some(Language::ENGLISH), 80.0);
        assert!(passage.len() == 4 && passage.values().iter().all(|weight| weight / step % 1.0 == 0.0));
    }

    #[test]
    fn part_has_the_vector_of_the_same_passage() {
        let encoder = SparseEncoder::default();
        for (language, text) in
            [("en", "The moons of Mars, its two moons"), ("zh", "木星卫队轨道 moons"), ("", "")]
        {
            let language = Language::from_code(language);
            let mut terms = DocumentTerms::new(language);
            let passage = encoder.passage(text, language, 80.0);
            assert_eq!(encoder.part(text, &terms, 80.0), passage);
            terms.learn(text, |_| {});
            assert_eq!(encoder.part(text, &terms, 80.0), passage);
        }
    }

    #[test]
    fn query_and_matching_passage_share_terms() {
        let encoder = SparseEncoder::default();
        let matches = |query: &str, text: &str, language: &str| {
            let passage = encoder.passage(text, Language::from_code(language), 10.0);
            encoder.query(query).indices().iter().any(|id| passage.indices().contains(id))
        };
        assert!(matches("volcano", "Volcanoes erupt.", "en"));
        assert!(matches("Schwester", "Die sieben Schwestern", "de"));
        assert!(matches("東京", "東京タワーは高い", "ja"));
        assert!(matches("err-1001", "It fails with ERR-1001.", "en"));
        assert!(!matches("planet", "Volcanoes erupt.", "en"));
        assert_eq!(encoder.terms(&query_terms("two moons")), encoder.query("two moons"));
        assert!(encoder.query("?!").is_empty() && encoder.passage("", None, 0.0).is_empty());
    }

    #[test]
    fn term_ids_are_stable_across_versions() {
        // The 64-bit FNV-1a of "a" is af63dc4c8601ec8c.
        assert_eq!(term_id("a"), 0xaf63_dc4c ^ 0x8601_ec8c);
        assert_eq!(term_id(""), 0xcbf2_9ce4 ^ 0x8422_2325);
    }
}
