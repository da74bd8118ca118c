//! The markers of list items.

use std::collections::HashMap;

use lkr_parsers::Result;
use quick_xml::events::BytesStart;

use crate::xml::{ElementKind, Xml, XmlEvent, attribute};

/// Word lists have nine levels.
const LEVELS: usize = 9;

/// Most definitions that are read.
const MAX_DEFINITIONS: usize = 20_000;

/// Longer patterns are ignored.
const MAX_PATTERN_BYTES: usize = 60;

/// The lists of a document and their counters.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    definitions: HashMap<String, [Level; LEVELS]>,
    /// The definition that each list style has.
    of_styles: HashMap<String, String>,
    /// The list style of each definition that has no levels of its own.
    styles: HashMap<String, String>,
    instances: HashMap<String, ListInstance>,
    counters: HashMap<String, [Option<u32>; LEVELS]>,
}

#[derive(Debug, Clone, Default)]
struct Level {
    format: String,
    pattern: String,
    start: Option<u32>,
}

/// A list: its definition, the levels that it defines itself, and the overridden start numbers of its levels.
#[derive(Debug, Clone, Default)]
struct ListInstance {
    definition: String,
    levels: [Option<Box<Level>>; LEVELS],
    starts: [Option<u32>; LEVELS],
    is_started: bool,
}

impl ListInstance {
    fn level<'a>(&'a self, definition: &'a [Level; LEVELS], at: usize) -> Option<&'a Level> {
        let own_level = self.levels.get(at).and_then(Option::as_deref);
        own_level.or(definition.get(at))
    }
}

impl Lists {
    pub(crate) fn read(xml: &mut Xml<'_>) -> Result<Self> {
        let mut reader = NumberingReader::default();
        while let Some(event) = xml.next()? {
            match event {
                XmlEvent::Start(kind, tag) => reader.open(kind, tag),
                XmlEvent::End(kind) => reader.close(kind),
                XmlEvent::Text(..) => {}
            }
        }
        Ok(reader.lists.resolved())
    }

    /// The same with each list defined by the levels that it has.
    fn resolved(mut self) -> Self {
        for instance in self.instances.values_mut() {
            let style = self.styles.get(&instance.definition);
            if let Some(definition) = style.and_then(|style| self.of_styles.get(style)) {
                instance.definition.clone_from(definition);
            }
        }
        self
    }

    /// Counts a paragraph on `level` of the list `id` that is shown without its marker, such as a heading.
    pub(crate) fn count(&mut self, id: &str, level: u8) {
        let _shown_elsewhere = self.mark(id, level);
    }

    /// The marker of the next item on `level` of the list `id`.
    pub(crate) fn mark(&mut self, id: &str, level: u8) -> String {
        let level = usize::from(level).min(LEVELS - 1);
        let Some(instance) = self.instances.get_mut(id) else {
            return BULLET.to_owned();
        };
        let Some(definition) = self.definitions.get(&instance.definition) else {
            return BULLET.to_owned();
        };
        // Lists of one definition continue the same counters, unless a list overrides its start number.
        let counters = self.counters.entry(instance.definition.clone()).or_default();
        if !instance.is_started {
            for (counter, start) in counters.iter_mut().zip(instance.starts) {
                *counter = start.map_or(*counter, |start| start.checked_sub(1));
            }
            instance.is_started = true;
        }
        let level_of = |at: usize| instance.level(definition, at);
        let begin = |at: usize| {
            let overridden = instance.starts.get(at).copied().flatten();
            overridden.or(level_of(at).and_then(|level| level.start)).unwrap_or(1)
        };
        count(counters, level, begin);
        mark(level_of, counters, level)
    }
}

const BULLET: &str = "-";

/// Counts the next item on `level`. Deeper levels are reset, and outer ones are started if necessary.
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

fn mark<'a>(
    level_of: impl Fn(usize) -> Option<&'a Level>,
    counters: &[Option<u32>; LEVELS],
    level: usize,
) -> String {
    let Some(own_level) = level_of(level) else {
        return BULLET.to_owned();
    };
    match own_level.format.as_str() {
        "none" => return String::new(),
        "bullet" | "" => return BULLET.to_owned(),
        _ => {}
    }
    let number = |at: usize| {
        let format = level_of(at).map_or("decimal", |level| level.format.as_str());
        format_number(counters.get(at).copied().flatten().unwrap_or(1), format)
    };
    if own_level.pattern.is_empty() || own_level.pattern.len() > MAX_PATTERN_BYTES {
        return format!("{}.", number(level));
    }
    let mut mark = own_level.pattern.clone();
    for at in 0..=level {
        mark = mark.replace(&format!("%{}", at + 1), &number(at));
    }
    mark
}

/// A number in a Word number format; in digits if the format is not supported.
fn format_number(number: u32, format: &str) -> String {
    match format {
        "lowerLetter" => letters(number, b'a'),
        "upperLetter" => letters(number, b'A'),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperRoman" => roman(number),
        "decimalZero" => format!("{number:02}"),
        _ => number.to_string(),
    }
}

/// `a` to `z`, then `aa`, `bb` and so on.
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

/// Collects the definitions from XML events.
#[derive(Debug, Default)]
struct NumberingReader {
    lists: Lists,
    definition: Option<(String, [Level; LEVELS])>,
    instance: Option<(String, ListInstance)>,
    level: usize,
}

impl NumberingReader {
    fn open(&mut self, kind: ElementKind, tag: &BytesStart<'_>) {
        let value = || attribute(tag, "val");
        let level = || attribute(tag, "ilvl").and_then(|level| level.parse().ok()).unwrap_or(LEVELS);
        match kind {
            ElementKind::AbstractNum => {
                self.definition = attribute(tag, "abstractNumId").map(|id| (id, Default::default()));
            }
            ElementKind::ListInstance => {
                self.instance = attribute(tag, "numId").map(|id| (id, ListInstance::default()));
            }
            ElementKind::Level | ElementKind::LevelOverride => {
                self.level = level();
                if let (ElementKind::Level, Some((_, instance))) = (kind, &mut self.instance)
                    && let Some(own_level) = instance.levels.get_mut(self.level)
                {
                    *own_level = Some(Box::default());
                }
            }
            ElementKind::StyleLink => {
                let definition = self.definition.as_ref().map(|(id, _)| id.clone());
                self.lists.of_styles.extend(value().zip(definition));
            }
            ElementKind::NumberingStyleLink => {
                let definition = self.definition.as_ref().map(|(id, _)| id.clone());
                self.lists.styles.extend(definition.zip(value()));
            }
            ElementKind::AbstractNumId => {
                if let (Some((_, instance)), Some(id)) = (&mut self.instance, value()) {
                    instance.definition = id;
                }
            }
            ElementKind::StartOverride => {
                let start =
                    self.instance.as_mut().and_then(|(_, instance)| instance.starts.get_mut(self.level));
                if let Some(start) = start {
                    *start = value().and_then(|value| value.parse().ok());
                }
            }
            ElementKind::Start | ElementKind::Format | ElementKind::LevelText => self.apply(kind, value()),
            _ => {}
        }
    }

    fn apply(&mut self, kind: ElementKind, value: Option<String>) {
        let level = match (&mut self.definition, &mut self.instance) {
            (Some((_, levels)), _) => levels.get_mut(self.level),
            (None, Some((_, instance))) => instance.levels.get_mut(self.level).and_then(Option::as_deref_mut),
            (None, None) => None,
        };
        let Some((level, value)) = level.zip(value) else {
            return;
        };
        match kind {
            ElementKind::Start => level.start = value.parse().ok(),
            ElementKind::Format => level.format = value,
            _ => level.pattern = value,
        }
    }

    fn close(&mut self, kind: ElementKind) {
        let room = self.lists.definitions.len() + self.lists.instances.len() < MAX_DEFINITIONS;
        match kind {
            ElementKind::AbstractNum if room => self.lists.definitions.extend(self.definition.take()),
            ElementKind::ListInstance if room => self.lists.instances.extend(self.instance.take()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_word() {
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
            assert_eq!(format_number(number, format), expected);
        }
    }
}
