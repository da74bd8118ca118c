use std::{collections::HashMap, ops::Range};

use lkr_text::{Analyzer, detect, query_terms, sentences};

use crate::plain::{plain, shorten};

/// The most passages that are read, best first.
const MAX_PASSAGES: usize = 30;

/// The most sentences of a passage that are read.
const MAX_SENTENCES: usize = 60;

/// The most sentences that are chosen.
const MAX_CHOSEN: usize = 5;

/// The factor of a query word that a chosen sentence contains already. See docs/studies.md#extractive-summaries.
const REPEATED: f32 = 0.3;

/// A sentence of a passage that answers a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummarySentence {
    /// The index of its passage.
    pub passage: usize,
    /// Its byte range in the passage.
    pub range: Range<usize>,
    /// Its text without markup.
    pub text: String,
}

/// The sentences of `passages` (best first) that answer `query` best: at most five, with at most `max_chars` Unicode
/// code points in total, in the order of the passages. At least one if a passage has words.
///
/// A query word weighs `ln(1 + N / n)`, where n of the N sentences contain it, and less once a chosen sentence has it.
/// Earlier passages are slightly preferred.
#[must_use]
pub fn summarize_passages(query: &str, passages: &[&str], max_chars: usize) -> Vec<SummarySentence> {
    let candidates = candidates(query, passages);
    let mut weights = rarity(&candidates);
    let mut chosen: Vec<usize> = Vec::new();
    let mut room = max_chars;
    while chosen.len() < MAX_CHOSEN {
        let scored = candidates.iter().enumerate().filter(|(at, candidate)| {
            !chosen.contains(at) && candidate.length <= room && !candidate.words.is_empty()
        });
        let best = scored
            .map(|(at, candidate)| (at, score(candidate, &weights)))
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        let Some((at, candidate)) = best.and_then(|(at, _)| Some((at, candidates.get(at)?))) else { break };
        room = room.saturating_sub(candidate.length + 1);
        chosen.push(at);
        for word in &candidate.words {
            weights.entry(*word).and_modify(|weight| *weight *= REPEATED);
        }
    }
    if chosen.is_empty() {
        return candidates.first().map(|first| first.sentence(max_chars)).into_iter().collect();
    }
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|at| Some(candidates.get(at)?.sentence(max_chars))).collect()
}

/// A candidate sentence.
struct Candidate {
    passage: usize,
    range: Range<usize>,
    text: String,
    length: usize,
    /// The indexes of the query words that it contains.
    words: Vec<usize>,
}

impl Candidate {
    fn sentence(&self, max_chars: usize) -> SummarySentence {
        let text = shorten(&self.text, max_chars);
        SummarySentence { passage: self.passage, range: self.range.clone(), text }
    }
}

fn candidates(query: &str, passages: &[&str]) -> Vec<Candidate> {
    let mut query_positions: HashMap<String, usize> = HashMap::new();
    for term in query_terms(query) {
        query_positions.entry(term.term).or_insert(term.range.start);
    }
    let mut candidates = Vec::new();
    for (passage, text) in passages.iter().enumerate().take(MAX_PASSAGES) {
        let analyzer = Analyzer::new(detect(text));
        for range in sentences(text).into_iter().take(MAX_SENTENCES) {
            let raw = text.get(range.clone()).unwrap_or_default();
            let plain = plain(raw);
            if !plain.chars().any(char::is_alphanumeric) || raw.starts_with('#') {
                continue;
            }
            let mut words = Vec::new();
            analyzer.for_each(raw, |term, _| words.extend(query_positions.get(&term)));
            words.sort_unstable();
            words.dedup();
            candidates.push(Candidate { passage, range, length: plain.chars().count(), text: plain, words });
        }
    }
    candidates
}

/// The weight of each query word.
fn rarity(candidates: &[Candidate]) -> HashMap<usize, f32> {
    let mut weights: HashMap<usize, f32> = HashMap::new();
    for word in candidates.iter().flat_map(|candidate| &candidate.words) {
        *weights.entry(*word).or_default() += 1.0;
    }
    weights.values_mut().for_each(|count| *count = (candidates.len() as f32 / *count).ln_1p());
    weights
}

fn score(candidate: &Candidate, weights: &HashMap<usize, f32>) -> f32 {
    let sum: f32 = candidate.words.iter().filter_map(|word| weights.get(word)).sum();
    let fragment = if candidate.length < 30 { 0.7 } else { 1.0 };
    sum * fragment / (1.0 + 0.08 * candidate.passage as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarize_passages_picks_sentences_with_query_words() {
        let passages = [
            "Jupiter has ninety-five moons. **Europa** hides a salty ocean under a crust of ice. It is cold.",
            "Io is volcanic. The ice of Europa is some twenty kilometres thick.",
        ];
        let found = summarize_passages("How thick is the ice over the ocean of Europa?", &passages, 400);
        let texts: Vec<_> = found.iter().map(|sentence| (sentence.passage, sentence.text.as_str())).collect();
        let expected = [
            (0, "Europa hides a salty ocean under a crust of ice."),
            (1, "The ice of Europa is some twenty kilometres thick."),
        ];
        assert_eq!(texts, expected);
        assert!(passages[0].get(found[0].range.clone()).unwrap().starts_with("**Europa**"));
    }

    #[test]
    fn summarize_passages_returns_a_sentence_for_any_query() {
        assert_eq!(summarize_passages("x", &[], 100), []);
        assert_eq!(summarize_passages("x", &["", " "], 100), []);
        assert_eq!(summarize_passages("nothing", &["Some other words."], 100)[0].text, "Some other words.");
        assert_eq!(
            summarize_passages("words", &["Some other words that are long."], 12)[0].text,
            "Some other…"
        );
    }

    #[test]
    fn summarize_passages_reads_chinese() {
        let found = summarize_passages("东京塔有多高", &["东京是日本的首都。东京塔高333米。人口很多。"], 20);
        assert!(found.iter().any(|sentence| sentence.text == "东京塔高333米。"), "{found:?}");
    }
}
