//! Extractive summaries: the sentences with the most frequent terms of the text.

use std::{collections::HashMap, ops::Range};

use crate::{
    front_matter::value,
    outline::Outline,
    piece::Body,
    plain::{plain, shorten},
    terms::Terms,
    unit::Unit,
};

/// The most candidate sentences: half are the first ones, half are spread over the rest.
const MAX_CANDIDATES: usize = 120;

/// The factor of a term that a chosen sentence contains already. See docs/studies.md#extractive-summaries.
const REPEATED: f32 = 0.25;

/// The limits of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) sentences: usize,
    /// In Unicode code points.
    pub(crate) chars: usize,
}

/// The input of summaries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summaries<'a> {
    pub(crate) text: &'a str,
    pub(crate) outline: &'a Outline<'a>,
    pub(crate) terms: &'a Terms,
}

/// A candidate sentence.
struct Candidate {
    words: String,
    length: usize,
    terms: Vec<u32>,
    /// A factor for its position and form.
    prior: f32,
}

impl Summaries<'_> {
    /// The summary of a range of units; not empty if there is a unit.
    pub(crate) fn of(&self, units: &Range<usize>, limits: Limits) -> String {
        let chosen = self.choose(&self.candidates(units, limits.chars), limits);
        if chosen.is_empty() { self.beginning(units, limits.chars) } else { chosen }
    }

    /// The sentences of `units` that are well-formed and fit.
    fn candidates(&self, units: &Range<usize>, max_chars: usize) -> Vec<Candidate> {
        let place = |at: usize| 1.0 + 0.8 / (1.0 + at as f32 / 2.0);
        sample(units)
            .filter_map(|at| Some((at, self.outline.units.get(at)?)))
            .filter(|(_, unit)| matches!(unit.body, Body::Prose | Body::List))
            .filter_map(|(at, unit)| self.candidate(at, unit, max_chars))
            .enumerate()
            .map(|(place_at, candidate)| Candidate { prior: candidate.prior * place(place_at), ..candidate })
            .collect()
    }

    fn candidate(&self, at: usize, unit: &Unit, max_chars: usize) -> Option<Candidate> {
        let raw = self.text.get(unit.range.clone()).filter(|raw| raw.len() <= 8 * max_chars)?;
        if raw.starts_with(['#', '<', '|']) {
            return None;
        }
        let words = plain(raw);
        let length = words.chars().count();
        if length > max_chars || !is_sentence_like(&words) {
            return None;
        }
        let mut terms = self.terms.of(at).to_vec();
        terms.sort_unstable();
        terms.dedup();
        let ends = words.ends_with(['.', '!', '?', '。', '！', '？', '…', '”', '"', ')']);
        let form = if unit.body == Body::List { 0.6 } else { 1.0 };
        Some(Candidate { prior: if ends { form } else { form * 0.6 }, words, length, terms })
    }

    /// Chooses greedily by the weight that a sentence adds, and returns the chosen ones in text order.
    fn choose(&self, candidates: &[Candidate], limits: Limits) -> String {
        let mut weights: HashMap<u32, f32> = HashMap::new();
        for term in candidates.iter().flat_map(|candidate| &candidate.terms) {
            *weights.entry(*term).or_default() += 1.0;
        }
        weights.values_mut().for_each(|weight| *weight = weight.ln_1p());
        let mut chosen: Vec<usize> = Vec::new();
        let mut room = limits.chars;
        while chosen.len() < limits.sentences {
            let fits = |at: &usize, candidate: &Candidate| candidate.length <= room && !chosen.contains(at);
            let best = candidates
                .iter()
                .enumerate()
                .filter(|(at, candidate)| fits(at, candidate))
                .map(|(at, candidate)| (at, score(candidate, &weights)))
                .reduce(|best, next| if next.1 > best.1 { next } else { best });
            let Some((at, candidate)) = best.and_then(|(at, _)| Some((at, candidates.get(at)?))) else {
                break;
            };
            room = room.saturating_sub(candidate.length + 1);
            chosen.push(at);
            for term in &candidate.terms {
                weights.entry(*term).and_modify(|weight| *weight *= REPEATED);
            }
        }
        chosen.sort_unstable();
        let words = chosen.into_iter().filter_map(|at| Some(candidates.get(at)?.words.as_str()));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The fallback if no sentence is suitable: the description in the front matter, otherwise the first words.
    fn beginning(&self, units: &Range<usize>, max_chars: usize) -> String {
        let units = self.outline.units.get(units.clone()).unwrap_or_default();
        let raw = |unit: &Unit| self.text.get(unit.range.clone()).unwrap_or_default();
        let matter = units.iter().filter(|unit| unit.body == Body::FrontMatter).map(raw);
        if let Some(description) = matter.into_iter().find_map(|raw| value(raw, "description")) {
            return shorten(description, max_chars);
        }
        let reach =
            |raw: &str| raw.get(..raw.floor_char_boundary(8 * max_chars)).unwrap_or_default().to_owned();
        let words =
            units.iter().take(40).map(|unit| plain(&reach(raw(unit)))).filter(|words| !words.is_empty());
        let words = words.collect::<Vec<_>>().join(" ");
        let words = if words.is_empty() {
            units.first().map(|unit| reach(raw(unit))).unwrap_or_default()
        } else {
            words
        };
        shorten(words.trim(), max_chars)
    }
}

/// The weight of a sentence's terms divided by the square root of their number, which favours neither long nor short
/// sentences.
fn score(candidate: &Candidate, weights: &HashMap<u32, f32>) -> f32 {
    let sum: f32 = candidate.terms.iter().filter_map(|term| weights.get(term)).sum();
    candidate.prior * sum / (candidate.terms.len() as f32 + 4.0).sqrt()
}

/// Whether the text looks like a sentence: long enough and mostly letters.
fn is_sentence_like(words: &str) -> bool {
    let letters = words.chars().filter(|c| c.is_alphabetic()).count();
    let wide =
        words.chars().filter(|c| matches!(c, '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')).count();
    let others = words.chars().filter(|c| !c.is_alphabetic() && !c.is_whitespace()).count();
    letters + 2 * wide >= 24 && others * 3 <= letters && !words.contains("://")
}

/// At most [`MAX_CANDIDATES`] units of a range, in order.
fn sample(units: &Range<usize>) -> impl Iterator<Item = usize> {
    let half = MAX_CANDIDATES / 2;
    let split = units.end.min(units.start + half);
    let step = (units.end - split).div_ceil(half).max(1);
    (units.start..split).chain((split..units.end).step_by(step))
}
