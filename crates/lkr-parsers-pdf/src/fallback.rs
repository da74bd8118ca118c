//! unpdf: what is read where pdf_oxide finds no text.

use std::borrow::Cow;

use unpdf::parser::ParseOptions;

use crate::page::Page;

/// What unpdf reads of the file, where that is clearly better than `pages`. The bytes are asked for where they are needed.
pub(crate) fn instead<'a>(
    pages: &[Page],
    bytes: impl FnOnce() -> Option<Cow<'a, [u8]>>,
) -> Option<Vec<Page>> {
    let first = Quality::of(pages);
    if !first.is_doubtful(pages.len()) {
        return None;
    }
    let options = ParseOptions::new().lenient().sequential().with_resources(false);
    let document = unpdf::parse_bytes_with_options(&bytes()?, options).ok()?;
    let second: Vec<Page> = document.pages.iter().map(|page| Page::from_text(&page.plain_text())).collect();
    let better = second.len() == pages.len() && Quality::of(&second).beats(&first);
    better.then_some(second)
}

/// What can be said of a text without knowing what the file shows.
#[derive(Debug, Default)]
struct Quality {
    letters: usize,
    /// Letters that are written from right to left.
    leftward: usize,
    /// Characters that stand for none.
    unknown: usize,
}

impl Quality {
    fn of(pages: &[Page]) -> Self {
        let mut quality = Self::default();
        for c in pages.iter().flat_map(|page| &page.lines).flat_map(|line| line.text.chars()) {
            quality.letters += usize::from(c.is_alphanumeric());
            quality.leftward += usize::from(is_leftward(c));
            quality.unknown += usize::from(c == char::REPLACEMENT_CHARACTER || is_private(c));
        }
        quality
    }

    /// Whether it is worth the time to read the file a second time.
    fn is_doubtful(&self, pages: usize) -> bool {
        self.letters < 12 * pages.max(1)
            || self.unknown * 5 > self.letters
            || self.leftward * 4 > self.letters
    }

    fn beats(&self, other: &Self) -> bool {
        let readable = |quality: &Self| quality.letters.saturating_sub(quality.unknown);
        let leftward = other.leftward * 4 > other.letters;
        if leftward { readable(self) * 10 >= readable(other) * 9 } else { readable(self) > readable(other) }
    }
}

fn is_leftward(c: char) -> bool {
    matches!(u32::from(c), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff)
}

fn is_private(c: char) -> bool {
    matches!(u32::from(c), 0xe000..=0xf8ff)
}
