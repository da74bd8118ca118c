//! The marks in front of list items.

use std::collections::HashMap;

use lkr_parsers::Result;
use quick_xml::events::BytesStart;

use crate::xml::{Kind, Piece, Xml, attribute};

/// Lists have nine levels.
const LEVELS: usize = 9;

/// How many definitions are read.
const MAX_DEFINITIONS: usize = 20_000;

/// A pattern longer than this is no list mark.
const MAX_PATTERN_BYTES: usize = 60;

/// The lists of a document, and how far they have been counted.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    definitions: HashMap<String, [Level; LEVELS]>,
    nums: HashMap<String, Num>,
    counters: HashMap<String, [Option<u32>; LEVELS]>,
}

#[derive(Debug, Clone, Default)]
struct Level {
    format: String,
    pattern: String,
    start: Option<u32>,
}

/// A list: its definition, and where levels of it begin anew.
#[derive(Debug, Clone, Default)]
struct Num {
    definition: String,
    starts: [Option<u32>; LEVELS],
    seen: bool,
}

impl Lists {
    pub(crate) fn read(xml: &mut Xml<'_>) -> Result<Self> {
        let mut reading = Reading::default();
        while let Some(piece) = xml.next()? {
            match piece {
                Piece::Open(kind, tag) => reading.open(kind, tag),
                Piece::Close(kind) => reading.close(kind),
                Piece::Text(..) => {}
            }
        }
        Ok(reading.lists)
    }

    /// The mark of the next item on `level` of the list `id`.
    pub(crate) fn mark(&mut self, id: &str, level: u8) -> String {
        let level = usize::from(level).min(LEVELS - 1);
        let Some(num) = self.nums.get_mut(id) else {
            return BULLET.to_owned();
        };
        let Some(definition) = self.definitions.get(&num.definition) else {
            return BULLET.to_owned();
        };
        // Lists of one definition go on counting, until one that says otherwise.
        let counters = self.counters.entry(num.definition.clone()).or_default();
        if !num.seen {
            for (counter, start) in counters.iter_mut().zip(num.starts) {
                *counter = start.map_or(*counter, |start| start.checked_sub(1));
            }
            num.seen = true;
        }
        let begin = |at: usize| {
            let own = num.starts.get(at).copied().flatten();
            own.or(definition.get(at).and_then(|level| level.start)).unwrap_or(1)
        };
        count(counters, level, begin);
        mark(definition, counters, level)
    }
}

const BULLET: &str = "-";

/// Counts the next item on `level`: levels below begin anew, those above begin at the least.
fn count(counters: &mut [Option<u32>; LEVELS], level: usize, begin: impl Fn(usize) -> u32) {
    for (at, counter) in counters.iter_mut().enumerate() {
        match at.cmp(&level) {
            std::cmp::Ordering::Less => *counter = counter.or_else(|| Some(begin(at))),
            std::cmp::Ordering::Equal => {
                *counter = Some(counter.map_or_else(|| begin(at), |counter| counter.saturating_add(1)));
            }
            std::cmp::Ordering::Greater => *counter = None,
        }
    }
}

fn mark(definition: &[Level; LEVELS], counters: &[Option<u32>; LEVELS], level: usize) -> String {
    let Some(own) = definition.get(level) else {
        return BULLET.to_owned();
    };
    match own.format.as_str() {
        "none" => return String::new(),
        "bullet" | "" => return BULLET.to_owned(),
        _ => {}
    }
    let number = |at: usize| {
        let format = definition.get(at).map_or("decimal", |level| level.format.as_str());
        written(counters.get(at).copied().flatten().unwrap_or(1), format)
    };
    if own.pattern.is_empty() || own.pattern.len() > MAX_PATTERN_BYTES {
        return format!("{}.", number(level));
    }
    let mut mark = own.pattern.clone();
    for at in 0..=level {
        mark = mark.replace(&format!("%{}", at + 1), &number(at));
    }
    mark
}

/// A number in a format of Word's; in digits where the format is not known here.
fn written(number: u32, format: &str) -> String {
    match format {
        "lowerLetter" => letters(number, b'a'),
        "upperLetter" => letters(number, b'A'),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperRoman" => roman(number),
        "decimalZero" => format!("{number:02}"),
        _ => number.to_string(),
    }
}

/// a to z, then aa, bb and so on.
fn letters(number: u32, first: u8) -> String {
    let at = number.saturating_sub(1);
    if number == 0 || at >= 26 * 20 {
        return number.to_string();
    }
    let letter = char::from(first + u8::try_from(at % 26).unwrap_or_default());
    letter.to_string().repeat(at as usize / 26 + 1)
}

fn roman(number: u32) -> String {
    const DIGITS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number == 0 || number >= 4000 {
        return number.to_string();
    }
    let (mut rest, mut text) = (number, String::new());
    for (value, digit) in DIGITS {
        text.push_str(&digit.repeat((rest / value) as usize));
        rest %= value;
    }
    text
}

/// The definitions while they are read.
#[derive(Debug, Default)]
struct Reading {
    lists: Lists,
    definition: Option<(String, [Level; LEVELS])>,
    num: Option<(String, Num)>,
    level: usize,
}

impl Reading {
    fn open(&mut self, kind: Kind, tag: &BytesStart<'_>) {
        let value = || attribute(tag, "val");
        let level = || attribute(tag, "ilvl").and_then(|level| level.parse().ok()).unwrap_or(LEVELS);
        match kind {
            Kind::AbstractNum => {
                self.definition = attribute(tag, "abstractNumId").map(|id| (id, Default::default()));
            }
            Kind::Num => self.num = attribute(tag, "numId").map(|id| (id, Num::default())),
            Kind::Level | Kind::LevelOverride => self.level = level(),
            Kind::AbstractNumId => {
                if let (Some((_, num)), Some(id)) = (&mut self.num, value()) {
                    num.definition = id;
                }
            }
            Kind::StartOverride => {
                let start = self.num.as_mut().and_then(|(_, num)| num.starts.get_mut(self.level));
                if let Some(start) = start {
                    *start = value().and_then(|value| value.parse().ok());
                }
            }
            Kind::Start | Kind::Format | Kind::LevelText => self.describe(kind, value()),
            _ => {}
        }
    }

    fn describe(&mut self, kind: Kind, value: Option<String>) {
        let level = self.definition.as_mut().and_then(|(_, levels)| levels.get_mut(self.level));
        let Some((level, value)) = level.zip(value) else {
            return;
        };
        match kind {
            Kind::Start => level.start = value.parse().ok(),
            Kind::Format => level.format = value,
            _ => level.pattern = value,
        }
    }

    fn close(&mut self, kind: Kind) {
        let room = self.lists.definitions.len() + self.lists.nums.len() < MAX_DEFINITIONS;
        match kind {
            Kind::AbstractNum if room => self.lists.definitions.extend(self.definition.take()),
            Kind::Num if room => self.lists.nums.extend(self.num.take()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written() {
        for (number, format, expected) in [
            (1, "decimal", "1"),
            (7, "decimalZero", "07"),
            (3, "lowerLetter", "c"),
            (28, "upperLetter", "BB"),
            (1994, "upperRoman", "MCMXCIV"),
            (4, "lowerRoman", "iv"),
            (4000, "upperRoman", "4000"),
            (100_000, "lowerLetter", "100000"),
            (5, "chineseCounting", "5"),
        ] {
            assert_eq!(written(number, format), expected);
        }
    }
}
