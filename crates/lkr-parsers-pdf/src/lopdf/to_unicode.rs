//! ToUnicode maps: the text of a font's codes, as the file declares it.
//!
//! Their syntax is that of PostScript, and files break it in small ways that other readers forgive. So the tokens of content
//! streams are used rather than a grammar.

use std::collections::{BTreeMap, HashMap, HashSet};

use lopdf::Object;

use super::tokens::Tokens;

/// Most operands of one section.
const MAX_OPERANDS: usize = 1 << 17;

/// Most entries of a map.
const MAX_ENTRIES: usize = 1 << 17;

/// The text of codes.
#[derive(Debug, Default)]
pub(super) struct ToUnicode {
    /// The lengths of codes in bytes, with the first and last code of that length.
    spaces: Vec<(usize, Vec<u8>, Vec<u8>)>,
    codes: HashMap<u32, String>,
    /// The codes that the file declares as unknown.
    unknown: HashSet<u32>,
    /// The codes whose text would be control characters.
    junk: HashSet<u32>,
    /// Ranges of codes with consecutive characters, by the first code: the last code and the first character.
    ranges: BTreeMap<u32, (u32, u32)>,
}

impl ToUnicode {
    /// Reads a map. What cannot be read is left out.
    pub(super) fn read(content: &[u8]) -> Self {
        let mut map = Self::default();
        let mut tokens = Tokens::with_max_operands(content, MAX_OPERANDS);
        while let Some(operation) = tokens.next() {
            let operands = operation.operands;
            match operation.operator {
                "endcodespacerange" => map.spaces.extend(operands.as_chunks().0.iter().filter_map(space)),
                "endbfchar" => operands.as_chunks().0.iter().for_each(|entry| map.add_code(entry)),
                "endbfrange" => operands.as_chunks().0.iter().for_each(|entry| map.add_range(entry)),
                _ => {}
            }
        }
        map
    }

    /// Whether the file declares the text of a code as unknown.
    pub(super) fn is_unknown(&self, code: u32) -> bool {
        self.unknown.contains(&code)
    }

    /// The length of the code that begins these bytes, if the map declares it.
    pub(super) fn code_length(&self, bytes: &[u8]) -> Option<usize> {
        let is_in = |(length, first, last): &&(usize, Vec<u8>, Vec<u8>)| {
            bytes.get(..*length).is_some_and(|code| {
                code.iter()
                    .zip(first.iter().zip(last))
                    .all(|(byte, (first, last))| first <= byte && byte <= last)
            })
        };
        self.spaces.iter().filter(is_in).map(|(length, ..)| *length).min()
    }

    /// Appends the text of a code; returns whether it has one that is more than control characters.
    pub(super) fn push_text(&self, code: u32, text: &mut String) -> bool {
        if let Some(known) = self.codes.get(&code) {
            text.push_str(known);
            return true;
        }
        let character = self.in_range(code);
        text.extend(character);
        character.is_some()
    }

    fn in_range(&self, code: u32) -> Option<char> {
        let (first, (last, character)) = self.ranges.range(..=code).next_back()?;
        let character = char::from_u32(character.checked_add(code - first)?).filter(|c| is_text(*c))?;
        (code <= *last).then_some(character)
    }

    /// Whether the text of a code would be control characters, which no letter is.
    pub(super) fn is_junk(&self, code: u32) -> bool {
        self.junk.contains(&code)
    }

    /// Whether all codes have two bytes.
    pub(super) fn has_wide_codes(&self) -> bool {
        self.spaces.iter().all(|(length, ..)| *length == 2)
    }

    /// All codes with their text, up to a number.
    pub(super) fn entries(&self) -> Vec<(u32, String)> {
        let of_ranges = self.ranges.iter().flat_map(|(first, (last, _))| *first..=*last);
        let codes = self.codes.keys().copied().chain(of_ranges).take(MAX_ENTRIES);
        let text = |code| {
            let mut text = String::new();
            self.push_text(code, &mut text).then_some((code, text))
        };
        let mut entries: Vec<(u32, String)> = codes.filter_map(text).collect();
        entries.extend(self.unknown.iter().map(|code| (*code, char::REPLACEMENT_CHARACTER.to_string())));
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn add_code(&mut self, [code, text]: &[Object; 2]) {
        if let Some((code, text)) = number(code).zip(characters(text)) {
            self.set(code, text);
        }
    }

    fn add_range(&mut self, [first, last, texts]: &[Object; 3]) {
        let (Some(first), Some(last)) = (number(first), number(last)) else { return };
        if let Object::Array(texts) = texts {
            for (code, text) in (first..=last).zip(texts) {
                if let Some(text) = characters(text) {
                    self.set(code, text);
                }
            }
        } else if let Some(text) = characters(texts) {
            let mut all = text.chars();
            match (all.next(), all.next()) {
                (Some(character), None) if first < last => {
                    self.ranges.insert(first, (last, u32::from(character)));
                }
                // The last character of several counts up.
                _ => (first..=last).take(256).for_each(|code| self.set(code, counted(&text, code - first))),
            }
        }
    }

    fn set(&mut self, code: u32, text: String) {
        if self.codes.len() + self.unknown.len() + self.junk.len() >= MAX_ENTRIES {
            return;
        }
        if text.chars().any(is_text) {
            self.codes.insert(code, text);
        } else if text.contains(char::REPLACEMENT_CHARACTER) {
            self.unknown.insert(code);
        } else {
            self.junk.insert(code);
        }
    }
}

fn space([first, last]: &[Object; 2]) -> Option<(usize, Vec<u8>, Vec<u8>)> {
    let (first, last) = (first.as_str().ok()?, last.as_str().ok()?);
    let is_code = first.len() == last.len() && (1..=4).contains(&first.len());
    is_code.then(|| (first.len(), first.to_vec(), last.to_vec()))
}

fn number(code: &Object) -> Option<u32> {
    let bytes = code.as_str().ok().filter(|bytes| (1..=4).contains(&bytes.len()))?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The characters of a target: UTF-16, or a single byte.
fn characters(target: &Object) -> Option<String> {
    match target.as_str().ok()? {
        [] => None,
        [byte] => Some(char::from(*byte).to_string()),
        bytes => {
            let units = bytes.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair));
            // Some fonts have a tab for their space.
            let character = |c: Result<char, _>| match c {
                Ok('\t') => ' ',
                c => c.unwrap_or(char::REPLACEMENT_CHARACTER),
            };
            Some(char::decode_utf16(units).map(character).collect())
        }
    }
}

/// The text with its last character advanced by `by`.
fn counted(text: &str, by: u32) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    if let Some(last) = characters.last_mut() {
        *last =
            u32::from(*last).checked_add(by).and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    characters.into_iter().collect()
}

/// Whether a character is text rather than a placeholder.
fn is_text(c: char) -> bool {
    c != char::REPLACEMENT_CHARACTER && !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_with_loose_syntax_are_read() {
        let map = ToUnicode::read(
            b"/CIDInit /ProcSet findresource begin\n/CIDSystemInfo <</Registry (F1R4+0) >> def\n\
              1 begincodespacerange <00><FF>endcodespacerange\n1 beginbfrange\n<01><05>[<0041><FFFD>\r\n<00660069>]\n\
              <10> <12> <03B1> endbfrange 3 beginbfchar <20><0009><21><000d> <22><0022> endbfchar\n\
              1 beginbfrange <30><31><00410042> endbfrange",
        );
        let text = |code| {
            let mut text = String::new();
            map.push_text(code, &mut text).then_some(text)
        };
        assert_eq!((text(1), text(2), text(3)), (Some("A".into()), None, Some("fi".into())));
        assert_eq!((text(0x11), text(0x13)), (Some("β".into()), None));
        assert_eq!((text(0x20), text(0x21)), (Some(" ".into()), None));
        assert_eq!((text(0x30), text(0x31)), (Some("AB".into()), Some("AC".into())));
        assert_eq!(
            (map.code_length(b"\x30\x31"), map.is_unknown(2), map.is_unknown(0x21)),
            (Some(1), true, false)
        );
    }

    #[test]
    fn codes_have_the_declared_lengths() {
        let map = ToUnicode::read(b"2 begincodespacerange <00> <7F> <C280> <DFBF> endcodespacerange");
        assert_eq!(map.code_length(b"A\xd0"), Some(1));
        assert_eq!(map.code_length(b"\xd0\x9f"), Some(2));
        assert_eq!((map.code_length(b"\xff\xff"), map.code_length(b"")), (None, None));
    }
}
