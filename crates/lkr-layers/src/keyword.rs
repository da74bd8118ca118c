//! Keywords: words and phrases that a text repeats.

use std::{cmp::Reverse, collections::HashMap, ops::Range};

use lkr_text::{DocumentTerms, Language, is_stop_word, words};

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
pub(crate) fn keywords(text: &str, title: &str, outline: &Outline<'_>, terms: &DocumentTerms) -> Vec<String> {
    let mut counts = Counts::new(terms);
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

/// The number of a word or of a stem.
type WordId = u32;

/// A word, or a phrase of two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Phrase(WordId, Option<WordId>);

/// How often the stems of a word or phrase occurred.
#[derive(Debug)]
struct Entry {
    weight: f32,
    times: u32,
    /// The order of first occurrence, which breaks ties.
    first: usize,
}

/// How often a word or phrase occurred as it is written.
#[derive(Debug)]
struct Form {
    times: u32,
    /// The order of first occurrence, which breaks ties.
    first: usize,
}

/// A word that occurred.
#[derive(Debug, Clone, Copy)]
struct Word {
    id: WordId,
    /// Its stem, if it may be a keyword.
    stem: Option<WordId>,
}

/// Words and stems by number.
#[derive(Debug, Default)]
struct Names {
    ids: HashMap<Box<str>, WordId>,
    names: Vec<Box<str>>,
}

impl Names {
    fn id(&mut self, name: &str) -> WordId {
        self.ids.get(name).copied().unwrap_or_else(|| {
            let next = self.names.len() as WordId;
            self.ids.insert(name.into(), next);
            self.names.push(name.into());
            next
        })
    }

    fn of(&self, phrase: Phrase) -> Vec<&str> {
        let ids = std::iter::once(phrase.0).chain(phrase.1);
        ids.filter_map(|id| self.names.get(id as usize)).map(|name| &**name).collect()
    }
}

#[derive(Debug)]
struct Counts<'t> {
    terms: &'t DocumentTerms,
    words: HashMap<Box<str>, Word>,
    names: Names,
    entries: HashMap<Phrase, Entry>,
    /// By stems and by what is written.
    forms: HashMap<(Phrase, Phrase), Form>,
    met: usize,
}

impl<'t> Counts<'t> {
    fn new(terms: &'t DocumentTerms) -> Self {
        let (words, names) = (HashMap::new(), Names::default());
        Self { terms, words, names, entries: HashMap::new(), forms: HashMap::new(), met: 0 }
    }

    /// Counts the words of `text`, and pairs of words separated by one space.
    fn add(&mut self, text: &str, weight: f32) {
        let mut before: Option<(Range<usize>, Word, WordId)> = None;
        for range in words(text) {
            let word = text.get(range.clone()).unwrap_or_default();
            if is_east_asian(word) {
                self.add_run(word, weight);
                before = None;
                continue;
            }
            let met = self.word(word);
            let Some(stem) = met.stem else {
                before = None;
                continue;
            };
            self.count(Phrase(stem, None), Phrase(met.id, None), weight);
            if let Some((first, first_word, first_stem)) = before.take()
                && text.get(first.end..range.start) == Some(" ")
            {
                self.count(Phrase(first_stem, Some(stem)), Phrase(first_word.id, Some(met.id)), weight);
            }
            before = Some((range, met, stem));
        }
    }

    /// Counts parts of a run of Chinese or Japanese: words of one script in Japanese, otherwise sequences of two to
    /// four characters.
    fn add_run(&mut self, run: &str, weight: f32) {
        let katakana = |c: char| matches!(c, '\u{30a1}'..='\u{30ff}');
        let japanese = self.terms.language() == Some(Language::JAPANESE);
        let parts =
            run.split(|c: char| matches!(c, '\u{3040}'..='\u{309f}') || (!japanese && JOINING.contains(c)));
        for part in parts {
            let chars: Vec<char> = part.chars().collect();
            for same in chars.chunk_by(|a, b| katakana(*a) == katakana(*b)) {
                let is_word = japanese || same.first().copied().is_some_and(katakana);
                let lengths = if is_word { same.len()..=same.len() } else { 2..=4 };
                for length in lengths.filter(|length| (2..=12).contains(length)) {
                    for stretch in same.windows(length) {
                        let word = Phrase(self.names.id(&stretch.iter().collect::<String>()), None);
                        self.count(word, word, weight);
                    }
                }
            }
        }
    }

    fn word(&mut self, word: &str) -> Word {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let stem = self.stem(word).map(|stem| self.names.id(&stem));
        let met = Word { id: self.names.id(word), stem };
        self.words.insert(word.into(), met);
        met
    }

    /// The stem of a word if it may be a keyword.
    fn stem(&self, word: &str) -> Option<String> {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        let lowered = word.to_lowercase();
        let language = self.terms.language();
        let english = language.is_none_or(|language| language == Language::ENGLISH);
        let stop = is_stop_word(word, language.unwrap_or(Language::ENGLISH));
        if !(3..=40).contains(&letters) || stop || (english && VAGUE.contains(&lowered.as_str())) {
            return None;
        }
        let mut stem = None;
        self.terms.for_each(word, |term| {
            stem.get_or_insert_with(|| term.to_owned());
        });
        stem
    }

    fn count(&mut self, stems: Phrase, form: Phrase, weight: f32) {
        self.met += 1;
        let first = self.met;
        let entry = self.entries.entry(stems).or_insert(Entry { weight: 0.0, times: 0, first });
        entry.weight += weight;
        entry.times += 1;
        self.forms.entry((stems, form)).or_insert(Form { times: 0, first }).times += 1;
    }

    fn strongest(self) -> Vec<String> {
        let mut entries: Vec<(f32, Phrase, Entry)> = self
            .entries
            .into_iter()
            .filter(|(phrase, entry)| {
                entry.times > 1
                    || phrase.1.is_none() && !self.names.of(*phrase).into_iter().any(is_east_asian)
            })
            .map(|(phrase, entry)| (score(&self.names.of(phrase), &entry), phrase, entry))
            .collect();
        entries.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.first.cmp(&b.2.first)));
        let mut chosen: Vec<(Phrase, Vec<&str>, Entry)> = Vec::new();
        for (_, phrase, entry) in entries {
            if chosen.len() == MAX_KEYWORDS {
                break;
            }
            let stems = self.names.of(phrase);
            if chosen.iter().all(|(_, known, other)| adds_to(&stems, &entry, known, other)) {
                chosen.push((phrase, stems, entry));
            }
        }
        let chosen: Vec<Phrase> = chosen.into_iter().map(|(phrase, ..)| phrase).collect();
        best_forms(&self.forms, &chosen).into_iter().map(|form| self.names.of(form).join(" ")).collect()
    }
}

/// The most frequent form of each of some stems; of equals the first.
fn best_forms(forms: &HashMap<(Phrase, Phrase), Form>, chosen: &[Phrase]) -> Vec<Phrase> {
    let mut best: Vec<Option<(Phrase, &Form)>> = vec![None; chosen.len()];
    let rank = |form: &Form| (form.times, Reverse(form.first));
    for ((stems, written), form) in forms {
        let place = chosen.iter().position(|chosen| chosen == stems).and_then(|at| best.get_mut(at));
        if let Some(best) = place.filter(|best| best.is_none_or(|(_, best)| rank(form) > rank(best))) {
            *best = Some((*written, form));
        }
    }
    best.into_iter().flatten().map(|(written, _)| written).collect()
}

/// Damped frequency. Phrases and longer words score higher.
fn score(stems: &[&str], entry: &Entry) -> f32 {
    let chars: usize = stems.iter().map(|stem| stem.chars().count()).sum();
    let telling = if stems.iter().any(|stem| is_east_asian(stem)) {
        (chars as f32).powf(1.2)
    } else {
        (chars.min(14) as f32).sqrt() * if stems.len() > 1 { 1.4 } else { 1.0 }
    };
    entry.weight.powf(0.8) * telling
}

/// Whether a candidate adds to a keyword that was chosen already.
fn adds_to(stems: &[&str], entry: &Entry, known: &[&str], other: &Entry) -> bool {
    let inside = |part: &[&str], phrase: &[&str]| {
        part.iter().all(|stem| {
            phrase.iter().any(|other| stem == other || (is_east_asian(stem) && other.contains(stem)))
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
fn overlap(stems: &[&str], known: &[&str]) -> bool {
    let ([stem], [known]) = (stems, known) else { return false };
    let chars: Vec<char> = stem.chars().collect();
    let shared = |part: &[char]| known.contains(&part.iter().collect::<String>());
    is_east_asian(stem) && chars.len() > 2 && chars.windows(chars.len() - 1).any(shared)
}

fn is_east_asian(stem: &str) -> bool {
    stem.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}'))
}
