use serde_json::{Value, json};

use crate::Seed;

/// The sections of a [`survey`], of about a chunk each.
pub const SECTIONS: u64 = 20;

/// Two of these are a word.
const SYLLABLES: [&str; 40] = [
    "ba", "salt", "gran", "ite", "mar", "ble", "sla", "te", "quar", "tz", "gne", "iss", "oli", "vine", "pum",
    "ice", "schi", "st", "dol", "mite", "obs", "idian", "feld", "spar", "ve", "in", "cry", "stal", "lay",
    "er", "rid", "ge", "val", "ley", "gla", "cier", "mo", "raine", "del", "ta",
];

/// One of 1,600 words. The first are the most frequent, as in a language.
#[must_use]
pub fn word(seed: &mut Seed) -> String {
    let syllables = SYLLABLES.len() as u64;
    let end = 1 + seed.below(syllables * syllables);
    let word = usize::try_from(seed.below(end)).unwrap_or_default();
    let (first, second) = (word / SYLLABLES.len(), word % SYLLABLES.len());
    format!("{}{}", SYLLABLES[first], SYLLABLES[second])
}

/// The document number `n`, with [`SECTIONS`] sections. Section `s` alone has the word `mark{n}x{s}`.
#[must_use]
pub fn survey(n: u64, seed: &mut Seed) -> Value {
    let mut text = format!("# Survey {n}\n\n");
    for section in 0..SECTIONS {
        text += &format!("## Site {n}-{section}\n\nThe mark mark{n}x{section} is here.");
        for _ in 0..60 {
            text.push(' ');
            text += &word(seed);
        }
        text += ".\n\n";
    }
    json!({"title": format!("Survey {n}"), "source": format!("survey:{n}"), "text": text})
}
