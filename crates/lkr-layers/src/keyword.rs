//! Keywords: words and phrases that a text repeats.

use std::collections::HashMap;

use lkr_text::{Analyzer, Language, is_stop_word, words};

use crate::{outline::Outline, piece::Body, plain::plain};

/// The most keywords of a document.
const MAX_KEYWORDS: usize = 10;

/// The most units that are read, spread over the document.
const MAX_UNITS: usize = 1_500;

/// The most headings that are read.
const MAX_HEADINGS: usize = 200;

/// The weight of a word in a heading, relative to a sentence. See docs/studies.md#extractive-summaries.
const HEADING_WEIGHT: f32 = 2.0;

/// The weight of a word in the document's title, relative to a sentence. See docs/studies.md#extractive-summaries.
const TITLE_WEIGHT: f32 = 4.0;

/// English words that are no stop words and yet do not indicate a text's subject.
const VAGUE: [&str; 56] = [
    "also",
    "may",
    "use",
    "used",
    "using",
    "one",
    "two",
    "three",
    "would",
    "like",
    "however",
    "many",
    "much",
    "new",
    "well",
    "get",
    "make",
    "made",
    "see",
    "way",
    "could",
    "need",
    "first",
    "including",
    "include",
    "e.g",
    "i.e",
    "etc",
    "within",
    "without",
    "since",
    "based",
    "per",
    "via",
    "example",
    "following",
    "must",
    "might",
    "every",
    "please",
    "want",
    "know",
    "take",
    "time",
    "people",
    "good",
    "work",
    "even",
    "another",
    "shall",
    "upon",
    "something",
    "anyone",
    "often",
    "case",
    "things",
];

/// Chinese and Japanese characters that are function words.
const JOINING: &str = "的了是在和与及为有不这那其一个以中对于上下也都而就到说要会可着没看自之年月日等或被从将但并很更由所们他她它你我您吗呢吧啊";

/// The keywords of a document, strongest first, one for each stem, in the most frequent form.
pub(crate) fn keywords(
    text: &str,
    title: &str,
    outline: &Outline<'_>,
    language: Option<Language>,
) -> Vec<String> {
    let mut counts = Counts::new(language);
    counts.add(title, TITLE_WEIGHT);
    for heading in outline.headings.iter().take(MAX_HEADINGS) {
        counts.add(heading.title, HEADING_WEIGHT);
    }
    let step = outline.units.len().div_ceil(MAX_UNITS).max(1);
    for unit in
        outline.units.iter().step_by(step).filter(|unit| !matches!(unit.body, Body::Code | Body::FrontMatter))
    {
        counts.add(&plain(text.get(unit.range.clone()).unwrap_or_default()), 1.0);
    }
    counts.strongest()
}

/// A word or phrase, as stems.
#[derive(Debug, Default)]
struct Entry {
    weight: f32,
    times: u32,
    /// Its order of first occurrence, which breaks ties.
    first: usize,
    /// The frequency of each form.
    forms: HashMap<String, (u32, usize)>,
}

#[derive(Debug)]
struct Counts {
    language: Option<Language>,
    analyzer: Analyzer,
    entries: HashMap<Vec<String>, Entry>,
    met: usize,
}

impl Counts {
    fn new(language: Option<Language>) -> Self {
        Self { language, analyzer: Analyzer::new(language), entries: HashMap::new(), met: 0 }
    }

    /// Counts the words of `text`, and pairs of words separated by one space.
    fn add(&mut self, text: &str, weight: f32) {
        let mut before: Option<(std::ops::Range<usize>, Vec<String>)> = None;
        for range in words(text) {
            let word = text.get(range.clone()).unwrap_or_default();
            if word.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}')) {
                self.add_run(word, weight);
                before = None;
                continue;
            }
            let Some(stem) = self.stem(word) else {
                before = None;
                continue;
            };
            self.count(vec![stem.clone()], word, weight);
            if let Some((first, mut stems)) = before.take()
                && text.get(first.end..range.start) == Some(" ")
            {
                stems.push(stem.clone());
                self.count(stems, text.get(first.start..range.end).unwrap_or_default(), weight);
            }
            before = Some((range, vec![stem]));
        }
    }

    /// Counts parts of a run of Chinese or Japanese: words of one script in Japanese, otherwise sequences of two to
    /// four characters.
    fn add_run(&mut self, run: &str, weight: f32) {
        let katakana = |c: char| matches!(c, '\u{30a1}'..='\u{30ff}');
        let japanese = self.language == Some(Language::JAPANESE);
        let parts =
            run.split(|c: char| matches!(c, '\u{3040}'..='\u{309f}') || (!japanese && JOINING.contains(c)));
        for part in parts {
            let chars: Vec<char> = part.chars().collect();
            for same in chars.chunk_by(|a, b| katakana(*a) == katakana(*b)) {
                let is_word = japanese || same.first().copied().is_some_and(katakana);
                let lengths = if is_word { same.len()..=same.len() } else { 2..=4 };
                for length in lengths.filter(|length| (2..=12).contains(length)) {
                    for stretch in same.windows(length) {
                        let word: String = stretch.iter().collect();
                        self.count(vec![word.clone()], &word, weight);
                    }
                }
            }
        }
    }

    /// The stem of a word if it may be a keyword.
    fn stem(&self, word: &str) -> Option<String> {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        let lowered = word.to_lowercase();
        let english = self.language.is_none_or(|language| language == Language::ENGLISH);
        let stop = is_stop_word(word, self.language.unwrap_or(Language::ENGLISH));
        if !(3..=40).contains(&letters) || stop || (english && VAGUE.contains(&lowered.as_str())) {
            return None;
        }
        self.analyzer.analyze(word).into_iter().next().map(|token| token.term)
    }

    fn count(&mut self, stems: Vec<String>, form: &str, weight: f32) {
        self.met += 1;
        let met = self.met;
        let entry = self.entries.entry(stems).or_insert_with(|| Entry { first: met, ..Entry::default() });
        entry.weight += weight;
        entry.times += 1;
        entry.forms.entry(form.to_owned()).or_insert((0, met)).0 += 1;
    }

    fn strongest(self) -> Vec<String> {
        let mut entries: Vec<(f32, Vec<String>, Entry)> = self
            .entries
            .into_iter()
            .filter(|(stems, entry)| {
                entry.times > 1 || (stems.len() == 1 && stems.iter().all(|stem| !is_east_asian(stem)))
            })
            .map(|(stems, entry)| (score(&stems, &entry), stems, entry))
            .collect();
        entries.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.first.cmp(&b.2.first)));
        let mut chosen: Vec<(Vec<String>, Entry)> = Vec::new();
        for (_, stems, entry) in entries {
            if chosen.len() == MAX_KEYWORDS {
                break;
            }
            if chosen.iter().all(|(known, other)| adds_to(&stems, &entry, known, other)) {
                chosen.push((stems, entry));
            }
        }
        chosen.into_iter().map(|(_, entry)| entry.best_form()).collect()
    }
}

impl Entry {
    /// The most frequent form; of equals the first.
    fn best_form(self) -> String {
        let best =
            self.forms.into_iter().max_by_key(|(_, (times, first))| (*times, std::cmp::Reverse(*first)));
        best.map(|(form, _)| form).unwrap_or_default()
    }
}

/// Damped frequency. Phrases and longer words score higher.
fn score(stems: &[String], entry: &Entry) -> f32 {
    let chars: usize = stems.iter().map(|stem| stem.chars().count()).sum();
    let telling = if stems.iter().any(|stem| is_east_asian(stem)) {
        (chars as f32).powf(1.2)
    } else {
        (chars.min(14) as f32).sqrt() * if stems.len() > 1 { 1.4 } else { 1.0 }
    };
    entry.weight.powf(0.8) * telling
}

/// Whether a candidate adds to a keyword that was chosen already.
fn adds_to(stems: &[String], entry: &Entry, known: &[String], other: &Entry) -> bool {
    let inside = |part: &[String], phrase: &[String]| {
        part.iter().all(|stem| {
            phrase.iter().any(|other| stem == other || (is_east_asian(stem) && other.contains(stem.as_str())))
        })
    };
    // A part of a phrase that mostly occurs in that phrase adds nothing, nor does a phrase that consists of a chosen
    // word and little else, nor an overlapping phrase.
    let is_part = inside(stems, known) && entry.times < 3 * other.times;
    let contains_known = inside(known, stems);
    let share_a_word = stems.len() > 1 && known.len() > 1 && stems.iter().any(|stem| known.contains(stem));
    !is_part && !contains_known && !share_a_word && !overlap(stems, known)
}

/// Whether two sequences share all but one character.
fn overlap(stems: &[String], known: &[String]) -> bool {
    let ([stem], [known]) = (stems, known) else { return false };
    let chars: Vec<char> = stem.chars().collect();
    let shared = |part: &[char]| known.contains(&part.iter().collect::<String>());
    is_east_asian(stem) && chars.len() > 2 && chars.windows(chars.len() - 1).any(shared)
}

fn is_east_asian(stem: &str) -> bool {
    stem.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}'))
}
