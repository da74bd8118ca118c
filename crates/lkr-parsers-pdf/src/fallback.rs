//! The engine unpdf, for files in which pdf_oxide finds no readable text.

use std::borrow::Cow;

use unpdf::parser::ParseOptions;

use crate::page::Page;

/// The pages as read by unpdf, if that is clearly better than `pages`. `bytes` is called only if needed.
pub(crate) fn better_pages<'a>(
    pages: &[Page],
    bytes: impl FnOnce() -> Option<Cow<'a, [u8]>>,
) -> Option<Vec<Page>> {
    let first = Quality::of(pages);
    if !first.is_doubtful(pages.len()) {
        return None;
    }
    let options = ParseOptions::new().lenient().sequential().with_resources(false);
    let document = unpdf::parse_bytes_with_options(&bytes()?, options).ok()?;
    let fallback_pages: Vec<Page> =
        document.pages.iter().map(|page| Page::from_text(&page.plain_text())).collect();
    let better = fallback_pages.len() == pages.len() && Quality::of(&fallback_pages).is_better_than(&first);
    better.then_some(fallback_pages)
}

/// The quality of extracted text.
#[derive(Debug, Default)]
struct Quality {
    letters: usize,
    /// Letters of scripts that run from right to left.
    right_to_left: usize,
    /// Characters without a meaning.
    unknown: usize,
}

impl Quality {
    fn of(pages: &[Page]) -> Self {
        let mut quality = Self::default();
        for c in pages.iter().flat_map(|page| &page.lines).flat_map(|line| line.text.chars()) {
            quality.letters += usize::from(c.is_alphanumeric());
            quality.right_to_left += usize::from(is_right_to_left(c));
            quality.unknown += usize::from(c == char::REPLACEMENT_CHARACTER || is_private(c));
        }
        quality
    }

    /// Whether reading the file a second time is worthwhile.
    fn is_doubtful(&self, pages: usize) -> bool {
        self.letters < 12 * pages.max(1)
            || self.unknown * 5 > self.letters
            || self.right_to_left * 4 > self.letters
    }

    fn is_better_than(&self, other: &Self) -> bool {
        let readable = |quality: &Self| quality.letters.saturating_sub(quality.unknown);
        let right_to_left = other.right_to_left * 4 > other.letters;
        if right_to_left {
            readable(self) * 10 >= readable(other) * 9
        } else {
            readable(self) > readable(other)
        }
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff)
}

fn is_private(c: char) -> bool {
    matches!(u32::from(c), 0xe000..=0xf8ff)
}
