//! The single-byte encodings of Cyrillic text. `chardetng` knows neither those of the Macintosh and of DOS in the Balkans,
//! nor how sure its choice is.

use encoding_rs::{Encoding, IBM866, ISO_8859_5, KOI8_U, WINDOWS_1251, X_MAC_CYRILLIC};

use super::{Decoded, plausible};

/// Code page 855 of DOS from 0x80 on, sixteen characters in each row. `encoding_rs` does not have it.
const IBM855: [&str; 8] = [
    "ђЂѓЃёЁєЄѕЅіІїЇјЈ",
    "љЉњЊћЋќЌўЎџЏюЮъЪ",
    "аАбБцЦдДеЕфФгГ«»",
    "░▒▓│┤хХиИ╣║╗╝йЙ┐",
    "└┴┬├─┼кК╚╔╩╦╠═╬¤",
    "лЛмМнНоОп┘┌█▄Пя▀",
    "ЯрРсСтТуУжЖвВьЬ№",
    "\u{ad}ыЫзЗшШэЭщЩчЧ§■\u{a0}",
];

/// The encodings to choose from, the most widespread first.
const OTHERS: [&Encoding; 5] = [WINDOWS_1251, KOI8_U, IBM866, ISO_8859_5, X_MAC_CYRILLIC];

const IBM855_NAME: &str = "IBM855";

/// The least lead of the best score over the next one: about that of one word. Chosen, and checked by the table of samples
/// in `tests/encodings.rs`.
const MIN_LEAD: i32 = 15;

/// The least score of Cyrillic text for each of its letters, in tenths. Texts of several languages have 18 to 30, and those
/// in a wrong encoding or another script have less than 8.
const MIN_TENTHS: i32 = 13;

/// Fewer letters are not enough to prefer a Cyrillic encoding that `chardetng` does not consider.
const MIN_LETTERS: i32 = 12;

/// The result of a comparison of Cyrillic encodings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    /// The best one; `None` is IBM855.
    encoding: Option<&'static Encoding>,
    score: i32,
    lead: i32,
    /// How many letters the sample has in the best encoding.
    letters: i32,
}

impl Choice {
    /// Whether the text in the best encoding has the letters that Cyrillic text has.
    pub(super) const fn is_cyrillic(&self) -> bool {
        self.letters > 0 && self.score.saturating_mul(10) >= self.letters.saturating_mul(MIN_TENTHS)
    }

    /// Whether the sample is long enough to contradict `chardetng`.
    pub(super) const fn is_long(&self) -> bool {
        self.letters >= MIN_LETTERS
    }

    /// Decodes `bytes` with the best encoding.
    pub(super) fn read<'a>(&self, bytes: &'a [u8]) -> Decoded<'a> {
        let decoded = self.encoding.map_or_else(|| ibm855(bytes), |encoding| super::read(bytes, encoding));
        let unsure = self.lead < MIN_LEAD || plausible::is_doubtful(&decoded.text);
        Decoded { unsure, ..decoded }
    }
}

/// Whether this is an encoding of Cyrillic text.
pub(super) fn is_known(encoding: &'static Encoding) -> bool {
    OTHERS.contains(&encoding)
}

/// Decodes `bytes` as IBM855.
pub(super) fn ibm855(bytes: &[u8]) -> Decoded<'_> {
    let page = ibm855_page();
    let text: String = bytes.iter().map(|byte| character(&page, *byte)).collect();
    super::without_control_characters(text.into(), IBM855_NAME, false)
}

/// Compares the encodings by the letters that the sample has in each.
pub(super) fn choose(sample: &[u8]) -> Choice {
    let pages = OTHERS.iter().map(|encoding| (Some(*encoding), page_of(encoding)));
    let pages = pages.chain([(None, ibm855_page())]);
    let mut best = Choice { encoding: None, score: i32::MIN, lead: 0, letters: 0 };
    for (encoding, page) in pages {
        let (score, letters) = score(&page, sample);
        if score > best.score {
            best = Choice { encoding, score, lead: score.saturating_sub(best.score), letters };
        } else {
            best.lead = best.lead.min(best.score.saturating_sub(score));
        }
    }
    best
}

/// The characters of an encoding from 0x80 on.
fn page_of(encoding: &'static Encoding) -> Vec<char> {
    let decode = |byte: u8| {
        let bytes = [byte];
        let (text, _) = encoding.decode_without_bom_handling(&bytes);
        text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    (0x80..=0xff).map(decode).collect()
}

fn ibm855_page() -> Vec<char> {
    IBM855.iter().flat_map(|row| row.chars()).collect()
}

fn character(page: &[char], byte: u8) -> char {
    let in_page = usize::from(byte).checked_sub(0x80).and_then(|at| page.get(at));
    in_page.copied().unwrap_or_else(|| char::from(byte))
}

/// The score of a sample and the number of its letters above ASCII.
fn score(page: &[char], sample: &[u8]) -> (i32, i32) {
    let (mut total, mut letters, mut before) = (0_i32, 0_i32, ' ');
    for byte in sample {
        let c = character(page, *byte);
        total = total.saturating_add(transition(before, c));
        if !c.is_ascii() {
            total = total.saturating_add(frequency(c));
            letters = letters.saturating_add(i32::from(c.is_alphabetic()));
        }
        before = c;
    }
    (total, letters)
}

/// How frequent a character is in Russian, Ukrainian, Bulgarian and Serbian text.
fn frequency(c: char) -> i32 {
    let c = c.to_lowercase().next().unwrap_or(c);
    match c {
        'о' | 'е' | 'а' | 'и' | 'н' | 'т' => 4,
        'с' | 'р' | 'в' | 'л' | 'к' | 'м' | 'д' | 'п' => 2,
        'у' | 'я' | 'ы' | 'ь' | 'г' | 'з' | 'б' | 'ч' | 'й' | 'і' | 'ј' => 0,
        'х' | 'ж' | 'ш' | 'ю' | 'ц' | 'щ' | 'э' | 'ф' | 'ъ' | 'ї' => -2,
        'ё' | 'є' | 'љ' | 'њ' | 'ћ' | 'ђ' | 'џ' => -3,
        '«' | '»' | '„' | '“' | '”' | '’' | '—' | '–' | '…' | '№' | '\u{a0}' => -1,
        _ => -5,
    }
}

/// The penalty of adjacent characters that Cyrillic text rarely has.
fn transition(before: char, c: char) -> i32 {
    let is_mixed = before.is_alphabetic() && c.is_alphabetic() && before.is_ascii() != c.is_ascii();
    let is_raised = !c.is_ascii() && before.is_lowercase() && c.is_uppercase();
    match (is_mixed || is_raised, before.is_uppercase() && c.is_uppercase()) {
        (true, _) => -6,
        (false, true) => -1,
        (false, false) => 0,
    }
}
