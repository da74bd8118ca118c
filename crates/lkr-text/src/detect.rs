use std::borrow::Cow;

use crate::{
    Language,
    chars::{is_han, is_hangul, is_kana},
    fold::lower,
    stop,
    word::{SegmentKind, segments, slice},
};

/// The size in bytes of a sample. Long texts are sampled at their beginning, middle and end.
const SAMPLE_BYTES: usize = 4096;

/// The number of letters from which trigram statistics alone are reliable.
const MANY_LETTERS: usize = 160;

/// The language of `text`; `None` if it cannot be detected reliably.
///
/// Chinese, Japanese and Korean are detected by their scripts; kana distinguish Japanese from Chinese. Other languages
/// are detected by letter trigrams (whatlang). Short texts in an alphabet that several languages share also need a stop
/// word of the language, so the language of a short text is often unknown.
#[must_use]
pub fn detect(text: &str) -> Option<Language> {
    let sample = sample(text);
    let scripts = ScriptCounts::count(&sample);
    scripts.east_asian().or_else(|| by_trigrams(&sample, scripts.other))
}

fn sample(text: &str) -> Cow<'_, str> {
    if text.len() <= 3 * SAMPLE_BYTES {
        return Cow::Borrowed(text);
    }
    let part = |from: usize| {
        let start = text.floor_char_boundary(from);
        slice(text, &(start..text.floor_char_boundary(start + SAMPLE_BYTES)))
    };
    let (middle, end) = ((text.len() - SAMPLE_BYTES) / 2, text.len() - SAMPLE_BYTES);
    Cow::Owned([part(0), part(middle), part(end)].join("\n"))
}

/// The number of characters of a text in each script.
#[derive(Debug, Default)]
struct ScriptCounts {
    han: usize,
    kana: usize,
    hangul: usize,
    other: usize,
}

impl ScriptCounts {
    fn count(text: &str) -> Self {
        let mut scripts = Self::default();
        for c in text.chars() {
            match c {
                c if c.is_ascii() => scripts.other += usize::from(c.is_ascii_alphabetic()),
                c if is_han(c) => scripts.han += 1,
                c if is_kana(c) => scripts.kana += 1,
                c if is_hangul(c) => scripts.hangul += 1,
                c => scripts.other += usize::from(c.is_alphabetic()),
            }
        }
        scripts
    }

    /// The language of a mostly East Asian text. An East Asian character counts like three letters, because it carries
    /// more content, and because code, names and addresses in Latin letters are common in such texts.
    fn east_asian(&self) -> Option<Language> {
        let han_or_kana = self.han + self.kana;
        if (han_or_kana + self.hangul) * 3 < self.other.max(4) {
            return None;
        }
        if self.hangul > han_or_kana {
            return Some(Language::KOREAN);
        }
        match self.kana * 20 > han_or_kana {
            true => Some(Language::JAPANESE),
            false => (self.han > 3).then_some(Language::CHINESE),
        }
    }
}

fn by_trigrams(text: &str, letters: usize) -> Option<Language> {
    let info = whatlang::detect(text)?;
    let language = Language::from_detector(info.lang())?;
    if info.is_reliable() && (letters >= MANY_LETTERS || has_own_script(info.script())) {
        return Some(language);
    }
    let counts = StopWordCounts::count(text);
    let hits = counts.of(language);
    // Trigram statistics of few letters are weaker evidence than several stop words.
    let agreed = hits == counts.most() && (hits > 1 || (hits == 1 && info.is_reliable()));
    if agreed { Some(language) } else { counts.clear_winner() }
}

/// Whether whatlang knows only one language in a script.
fn has_own_script(script: whatlang::Script) -> bool {
    use whatlang::Script;
    !matches!(script, Script::Latin | Script::Cyrillic | Script::Arabic | Script::Devanagari | Script::Hebrew)
}

/// The number of stop words of each language among the first words of a text.
#[derive(Debug)]
struct StopWordCounts {
    words: usize,
    hits: Vec<(Language, usize)>,
}

impl StopWordCounts {
    fn count(text: &str) -> Self {
        let masks: Vec<_> = segments(text)
            .filter(|segment| segment.kind == SegmentKind::Word)
            .take(200)
            .map(|segment| stop::stop_word_languages(&lower(slice(text, &segment.range))))
            .collect();
        let hits = |bit| masks.iter().filter(|&mask| mask & bit != 0).count();
        Self {
            words: masks.len(),
            hits: stop::languages().map(|(language, bit)| (language, hits(bit))).collect(),
        }
    }

    fn of(&self, language: Language) -> usize {
        self.hits.iter().find(|(listed, _)| *listed == language).map_or(0, |(_, hits)| *hits)
    }

    fn most(&self) -> usize {
        self.hits.iter().map(|(_, hits)| *hits).max().unwrap_or_default()
    }

    /// The only language with the most stop words, if these are at least three and a quarter of the words.
    fn clear_winner(&self) -> Option<Language> {
        let most = self.most();
        let mut winners = self.hits.iter().filter(|(_, hits)| *hits == most);
        let (language, _) = winners.next()?;
        (winners.next().is_none() && most > 2 && most * 4 >= self.words).then_some(*language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(detect(text).map_or("", Language::code), expected, "{text}");
    }

    #[test]
    fn detect_recognises_languages_of_sentences() {
        check(
            "Jupiter has ninety-five moons with confirmed orbits; the four largest were seen by Galileo.",
            "en",
        );
        check("Which moon has an ocean under its ice?", "en");
        check("Über dem Geirangerfjord 🏔 stürzen die „Sieben Schwestern“ 250 Meter tief.", "de");
        check("Les élèves ont visité le musée de la ville avec leur professeur.", "fr");
        check("El perro corre por el parque y la niña lo mira desde la ventana.", "es");
        check("Москва — столица России и крупнейший город страны.", "ru");
        check("Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.", "el");
        check("サッカーは世界中で人気のあるスポーツです。", "ja");
        check("東京都は日本の首都です", "ja");
        check("足球是世界上最受欢迎的运动之一。", "zh");
        check("使用 GitLab Runner 部署应用程序", "zh");
        check("서울은 대한민국의 수도이다.", "ko");
    }

    #[test]
    fn detect_returns_none_without_evidence() {
        for text in ["", "a", "ok 42", "kubernetes", "ERR-1001", "🏔🏔🏔", "{}[]();"] {
            check(text, "");
        }
    }

    #[test]
    fn detect_samples_long_texts_on_character_boundaries() {
        check(
            &"Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch. ".repeat(1000),
            "de",
        );
        check(&"吾輩は猫である。名前はまだ無い。".repeat(3000), "ja");
    }
}
