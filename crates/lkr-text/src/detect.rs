use std::borrow::Cow;

use crate::{
    Language,
    chars::{is_han, is_hangul, is_kana},
    fold::lower,
    stop,
    word::{Kind, cut, segments},
};

/// Longer texts are judged by their beginning, middle and end, each of this many bytes.
const SAMPLE_BYTES: usize = 4096;

/// From this many letters on, letter statistics alone are believed.
const MANY_LETTERS: usize = 160;

/// The language of `text`, where it can be told reliably.
///
/// Chinese, Japanese and Korean are told by their scripts, Japanese from Chinese by its kana. Other languages are told
/// by letter trigrams; short texts in alphabets that several languages share also need a stop word of the language,
/// so that a short text is often of no known language.
#[must_use]
pub fn detect(text: &str) -> Option<Language> {
    let sample = sample(text);
    let scripts = Scripts::count(&sample);
    scripts.east_asian().or_else(|| by_trigrams(&sample, scripts.other))
}

fn sample(text: &str) -> Cow<'_, str> {
    if text.len() <= 3 * SAMPLE_BYTES {
        return Cow::Borrowed(text);
    }
    let part = |from: usize| {
        let start = text.floor_char_boundary(from);
        cut(text, &(start..text.floor_char_boundary(start + SAMPLE_BYTES)))
    };
    let (middle, end) = ((text.len() - SAMPLE_BYTES) / 2, text.len() - SAMPLE_BYTES);
    Cow::Owned([part(0), part(middle), part(end)].join("\n"))
}

/// How many characters of a text are of which script.
#[derive(Debug, Default)]
struct Scripts {
    han: usize,
    kana: usize,
    hangul: usize,
    other: usize,
}

impl Scripts {
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

    /// The language of a text whose characters are for the most part East Asian. One of them says as much as three
    /// letters do, and code, names and addresses in Latin letters are common among them.
    fn east_asian(&self) -> Option<Language> {
        let chinese = self.han + self.kana;
        if (chinese + self.hangul) * 3 < self.other.max(4) {
            return None;
        }
        if self.hangul > chinese {
            return Some(Language::KOREAN);
        }
        match self.kana * 20 > chinese {
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
    let tallies = Tallies::count(text);
    let hits = tallies.of(language);
    // Statistics of few letters are weaker evidence than several stop words.
    let agreed = hits == tallies.most() && (hits > 1 || (hits == 1 && info.is_reliable()));
    if agreed { Some(language) } else { tallies.clear_winner() }
}

/// Scripts that whatlang knows one language in.
fn has_own_script(script: whatlang::Script) -> bool {
    use whatlang::Script;
    !matches!(script, Script::Latin | Script::Cyrillic | Script::Arabic | Script::Devanagari | Script::Hebrew)
}

/// How many of the first words are stop words of which language.
#[derive(Debug)]
struct Tallies {
    words: usize,
    hits: Vec<(Language, usize)>,
}

impl Tallies {
    fn count(text: &str) -> Self {
        let masks: Vec<_> = segments(text)
            .filter(|segment| segment.kind == Kind::Word)
            .take(200)
            .map(|segment| stop::languages_of(&lower(cut(text, &segment.range))))
            .collect();
        let hits = |bit| masks.iter().filter(|&mask| mask & bit != 0).count();
        Self {
            words: masks.len(),
            hits: stop::known().map(|(language, bit)| (language, hits(bit))).collect(),
        }
    }

    fn of(&self, language: Language) -> usize {
        self.hits.iter().find(|(known, _)| *known == language).map_or(0, |(_, hits)| *hits)
    }

    fn most(&self) -> usize {
        self.hits.iter().map(|(_, hits)| *hits).max().unwrap_or_default()
    }

    /// The one language that has the most stop words, at least three and a quarter of the words.
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
    fn tells_languages() {
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
    fn says_nothing_where_it_cannot_know() {
        for text in ["", "a", "ok 42", "kubernetes", "ERR-1001", "🏔🏔🏔", "{}[]();"] {
            check(text, "");
        }
    }

    #[test]
    fn samples_long_texts_on_character_boundaries() {
        check(
            &"Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch. ".repeat(1000),
            "de",
        );
        check(&"吾輩は猫である。名前はまだ無い。".repeat(3000), "ja");
    }
}
