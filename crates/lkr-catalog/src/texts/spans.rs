//! Ranges of a text that is read in parts, so that it is never in memory as a whole.

use bytes::Bytes;
use lkr_domain::{CharSpan, hex};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result, verified};

/// The longest part that is examined on the thread that received it. A longer one would hold up other work there.
const MAX_INLINE_BYTES: usize = 64 << 10;
/// How many bytes are counted at once on the way to a code point.
const BLOCK_BYTES: usize = 1 << 10;

/// A text of which some ranges are kept.
#[derive(Debug)]
pub(super) struct SpanReading {
    hasher: Sha256,
    spans: Vec<CharSpan>,
    /// The bytes of each range.
    kept: Vec<Vec<u8>>,
    /// How many of the ranges have ended.
    ended: usize,
    /// How many code points have begun.
    begun: usize,
}

impl SpanReading {
    /// A text of which these ranges are kept. They are in order and do not overlap.
    pub(super) fn new(spans: Vec<CharSpan>) -> Self {
        let kept = vec![Vec::new(); spans.len()];
        Self { hasher: Sha256::new(), spans, kept, ended: 0, begun: 0 }
    }

    /// Examines the next part of the text. It may begin and end inside a character.
    pub(super) async fn read(mut self, part: Bytes) -> Result<Self> {
        if part.len() <= MAX_INLINE_BYTES {
            self.examine(&part);
            return Ok(self);
        }
        let examining = tokio::task::spawn_blocking(move || {
            self.examine(&part);
            self
        });
        examining.await.map_err(|error| Error::new(ErrorKind::Internal, "read text", error))
    }

    /// The ranges, once the text has ended. The part of a range behind the end of the text is left out.
    ///
    /// # Errors
    /// `Corrupt` if the SHA-256 of the text is not `sha256`, or a range is not UTF-8.
    pub(super) fn finish(self, sha256: Option<&str>, name: impl FnOnce() -> String) -> Result<Vec<String>> {
        let found = hex(&self.hasher.finalize());
        if sha256.is_some_and(|sha256| sha256 != found) {
            return Err(verified::damaged(&name()));
        }
        let decoded = self.kept.into_iter().map(String::from_utf8);
        decoded.map(|text| text.map_err(|error| Error::corrupt("read text", error))).collect()
    }

    fn examine(&mut self, part: &[u8]) {
        self.hasher.update(part);
        let mut rest = part;
        while !rest.is_empty()
            && let (Some(span), Some(kept)) = (self.spans.get(self.ended), self.kept.get_mut(self.ended))
        {
            let (start, end) = (span.start as usize, span.end as usize);
            // The last character before the range may still continue while no character of the range has begun.
            if self.begun <= start {
                let (_, after, begun) = split_before(rest, start - self.begun);
                self.begun += begun;
                rest = after;
            }
            let (inside, after, begun) = split_before(rest, end.saturating_sub(self.begun));
            self.begun += begun;
            kept.extend_from_slice(inside);
            rest = after;
            if !rest.is_empty() {
                self.ended += 1;
            }
        }
    }
}

/// Splits `bytes` before the `n`-th code point, from 0, that begins in them. Also returns how many begin before the split; all of
/// `bytes` are before it if no more than `n` begin.
fn split_before(bytes: &[u8], n: usize) -> (&[u8], &[u8], usize) {
    let mut begun = 0;
    for (index, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let here = block.iter().filter(|byte| begins_character(**byte)).count();
        if begun + here > n {
            let mut beginnings = block.iter().enumerate().filter(|(_, byte)| begins_character(**byte));
            let within = beginnings.nth(n - begun).map_or(0, |(at, _)| at);
            let (before, after) =
                bytes.split_at_checked(index * BLOCK_BYTES + within).unwrap_or((bytes, &[]));
            return (before, after, n);
        }
        begun += here;
    }
    (bytes, &[], begun)
}

/// Whether a byte of UTF-8 is the first one of a character.
const fn begins_character(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of `chars` code points of one to four bytes.
    fn text(chars: usize) -> String {
        "aé€😀z".chars().cycle().take(chars).collect()
    }

    fn spans(ranges: &[(u32, u32)]) -> Vec<CharSpan> {
        ranges.iter().map(|&(start, end)| CharSpan { start, end }).collect()
    }

    async fn read(text: &str, part_bytes: usize, ranges: &[(u32, u32)]) -> Vec<String> {
        let mut reading = SpanReading::new(spans(ranges));
        for part in text.as_bytes().chunks(part_bytes) {
            reading = reading.read(Bytes::copy_from_slice(part)).await.unwrap();
        }
        let sha256 = hex(&Sha256::digest(text));
        reading.finish(Some(&sha256), || "the text".to_owned()).unwrap()
    }

    fn expected(text: &str, ranges: &[(u32, u32)]) -> Vec<String> {
        let part = |&(start, end): &(u32, u32)| {
            text.chars().skip(start as usize).take((end - start) as usize).collect::<String>()
        };
        ranges.iter().map(part).collect()
    }

    #[tokio::test]
    async fn ranges_are_counted_in_code_points_across_parts() {
        let text = text(23);
        let all: [&[(u32, u32)]; 6] = [
            &[],
            &[(0, 23)],
            &[(0, 1), (1, 2), (2, 2), (2, 5), (9, 10)],
            &[(3, 3), (4, 22)],
            &[(20, 90), (95, 99)],
            &[(23, 24)],
        ];
        for ranges in all {
            for part_bytes in 1..=text.len() {
                assert_eq!(read(&text, part_bytes, ranges).await, expected(&text, ranges), "{ranges:?}");
            }
        }
    }

    #[tokio::test]
    async fn ranges_of_a_long_text_are_cut() {
        let text = text(200_000);
        let ranges = [(0, 1), (1_023, 1_026), (77_777, 99_999), (199_990, 200_000)];
        for part_bytes in [1_000, BLOCK_BYTES, 3 * MAX_INLINE_BYTES / 2, text.len()] {
            assert_eq!(read(&text, part_bytes, &ranges).await, expected(&text, &ranges));
        }
    }

    #[tokio::test]
    async fn damaged_text_is_refused_wherever_it_is_damaged() {
        let reading = SpanReading::new(spans(&[(0, 1)]));
        let reading = reading.read(Bytes::from_static(b"moon and lava")).await.unwrap();
        let sha256 = hex(&Sha256::digest(b"moon and ice"));
        let error = reading.finish(Some(&sha256), || "the text".to_owned()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
