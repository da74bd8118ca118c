use std::fmt;

use whatlang::Lang;

/// A language that can be detected, identified by its ISO 639-1 code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(&'static str);

/// The detector's languages with their codes, sorted by code.
#[rustfmt::skip]
const CODES: [(Lang, &str); 70] = [
    (Lang::Afr, "af"), (Lang::Aka, "ak"), (Lang::Amh, "am"), (Lang::Ara, "ar"), (Lang::Aze, "az"),
    (Lang::Bel, "be"), (Lang::Bul, "bg"), (Lang::Ben, "bn"), (Lang::Cat, "ca"), (Lang::Ces, "cs"),
    (Lang::Cym, "cy"), (Lang::Dan, "da"), (Lang::Deu, "de"), (Lang::Ell, "el"), (Lang::Eng, "en"),
    (Lang::Epo, "eo"), (Lang::Spa, "es"), (Lang::Est, "et"), (Lang::Pes, "fa"), (Lang::Fin, "fi"),
    (Lang::Fra, "fr"), (Lang::Guj, "gu"), (Lang::Heb, "he"), (Lang::Hin, "hi"), (Lang::Hrv, "hr"),
    (Lang::Hun, "hu"), (Lang::Hye, "hy"), (Lang::Ind, "id"), (Lang::Ita, "it"), (Lang::Jpn, "ja"),
    (Lang::Jav, "jv"), (Lang::Kat, "ka"), (Lang::Khm, "km"), (Lang::Kan, "kn"), (Lang::Kor, "ko"),
    (Lang::Lat, "la"), (Lang::Lit, "lt"), (Lang::Lav, "lv"), (Lang::Mkd, "mk"), (Lang::Mal, "ml"),
    (Lang::Mar, "mr"), (Lang::Mya, "my"), (Lang::Nep, "ne"), (Lang::Nld, "nl"), (Lang::Nob, "no"),
    (Lang::Ori, "or"), (Lang::Pan, "pa"), (Lang::Pol, "pl"), (Lang::Por, "pt"), (Lang::Ron, "ro"),
    (Lang::Rus, "ru"), (Lang::Sin, "si"), (Lang::Slk, "sk"), (Lang::Slv, "sl"), (Lang::Sna, "sn"),
    (Lang::Srp, "sr"), (Lang::Swe, "sv"), (Lang::Tam, "ta"), (Lang::Tel, "te"), (Lang::Tha, "th"),
    (Lang::Tuk, "tk"), (Lang::Tgl, "tl"), (Lang::Tur, "tr"), (Lang::Ukr, "uk"), (Lang::Urd, "ur"),
    (Lang::Uzb, "uz"), (Lang::Vie, "vi"), (Lang::Yid, "yi"), (Lang::Cmn, "zh"), (Lang::Zul, "zu"),
];

impl Language {
    /// English.
    pub const ENGLISH: Self = Self("en");
    /// German.
    pub const GERMAN: Self = Self("de");
    /// French.
    pub const FRENCH: Self = Self("fr");
    /// Chinese, in either script.
    pub const CHINESE: Self = Self("zh");
    /// Japanese.
    pub const JAPANESE: Self = Self("ja");
    /// Korean.
    pub const KOREAN: Self = Self("ko");

    /// The ISO 639-1 code, such as `en`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.0
    }

    /// The language of a lower-case ISO 639-1 code; `None` if it cannot be detected.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        let at = CODES.binary_search_by(|(_, listed)| (*listed).cmp(code)).ok()?;
        CODES.get(at).map(|(_, code)| Self(code))
    }

    /// The language of a detector's language.
    pub(crate) fn from_detector(lang: Lang) -> Option<Self> {
        CODES.iter().find(|(listed, _)| *listed == lang).map(|(_, code)| Self(code))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_round_trip() {
        assert!(CODES.is_sorted_by(|a, b| a.1 < b.1));
        for (lang, code) in CODES {
            assert_eq!(Language::from_code(code).map(Language::code), Some(code));
            assert_eq!(Language::from_detector(lang).map(Language::code), Some(code));
        }
        assert_eq!(Language::from_code("xx"), None);
        assert_eq!(Language::from_code(""), None);
    }

    #[test]
    fn codes_cover_every_language_of_the_detector() {
        for lang in Lang::all() {
            assert!(Language::from_detector(*lang).is_some(), "{}", lang.code());
        }
    }
}
