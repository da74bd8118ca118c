use std::ops::Range;

use lkr_domain::CharSpan;

/// The distance in bytes between stored positions.
const STRIDE: usize = 256;

/// Converts byte offsets of a text to offsets in Unicode code points in constant time.
#[derive(Debug)]
pub(crate) struct Offsets<'a> {
    text: &'a str,
    /// The number of code points that begin before each multiple of [`STRIDE`].
    counts: Vec<u32>,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut total = 0;
        let counts = text.as_bytes().chunks(STRIDE).map(|bytes| {
            let before = total;
            total += count(bytes);
            before
        });
        Self { text, counts: counts.collect() }
    }

    /// The number of code points before `byte`, which must be a character boundary.
    pub(crate) fn char_at(&self, byte: usize) -> u32 {
        let before = self.counts.get(byte / STRIDE).copied();
        let Some(before) = before else {
            let last = self.counts.len().saturating_sub(1);
            return self.counts.last().map_or(0, |before| before + self.tail(last * STRIDE, byte));
        };
        before + self.tail(byte - byte % STRIDE, byte)
    }

    pub(crate) fn span(&self, range: &Range<usize>) -> CharSpan {
        CharSpan { start: self.char_at(range.start), end: self.char_at(range.end) }
    }

    fn tail(&self, from: usize, to: usize) -> u32 {
        self.text.as_bytes().get(from..to).map_or(0, count)
    }
}

/// The number of code points that begin in `bytes`.
fn count(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(byte & 0xc0 != 0x80)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn char_at_equals_counting() {
        for text in [String::new(), "aé東🏔".repeat(200), "x".repeat(2 * STRIDE), "é".repeat(STRIDE)] {
            let offsets = Offsets::new(&text);
            for (chars, (byte, _)) in text.char_indices().chain([(text.len(), ' ')]).enumerate() {
                assert_eq!(offsets.char_at(byte), chars as u32);
            }
        }
    }
}
