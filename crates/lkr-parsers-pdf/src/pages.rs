//! Showing pages: the image of a page, and where a text is on it. Both come from one reader, so that they fit.

mod align;
mod image;
mod letters;
mod normal;

use std::{collections::BTreeMap, ops::Range, path::Path};

use lkr_parsers::Result;

use self::{
    align::{Passages, place},
    letters::line_numbers,
};
pub(crate) use self::{
    image::Pixels,
    letters::{Letter, PageFrame},
};
use crate::{error, error::guarded, pdfium};

/// Shows pages of PDF files.
#[derive(Debug, Clone, Copy)]
pub struct PdfPages {
    reader: ReaderKind,
}

#[derive(Debug, Clone, Copy)]
enum ReaderKind {
    Pdfium(pdfium::PageLibrary),
}

/// A part of the extracted text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The position of its first code point in the extracted text of the document.
    pub start: u32,
    /// The text.
    pub text: String,
}

/// Where the letters of an extracted text are on a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedText {
    /// The width of the page as its image shows it, in points.
    pub width: f32,
    /// The height of the page as its image shows it, in points.
    pub height: f32,
    /// The letters that were found, by position in the extracted text. White space has no place.
    pub letters: Vec<PlacedLetter>,
}

/// A letter of an extracted text on its page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedLetter {
    /// Its position in the extracted text of the document, in code points.
    pub at: u32,
    /// The line of the page that contains it, from 0. A wide gap separates lines too.
    pub line: u32,
    /// Its left, upper, right and lower edge, in points from the upper left corner of the image.
    pub place: [f32; 4],
}

impl PlacedText {
    /// The boxes of the letters in a range of the extracted text, one for each line: their left, upper, right and lower
    /// edges.
    #[must_use]
    pub fn boxes(&self, range: Range<u32>) -> Vec<[f32; 4]> {
        let mut lines: BTreeMap<u32, [f32; 4]> = BTreeMap::new();
        for letter in self.letters.iter().filter(|letter| range.contains(&letter.at)) {
            lines
                .entry(letter.line)
                .and_modify(|line| *line = union(*line, letter.place))
                .or_insert(letter.place);
        }
        lines.into_values().collect()
    }
}

/// The smallest place that contains both.
fn union(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

/// Reads pages of one open file.
pub(crate) trait PageReader {
    /// The number of pages.
    fn pages(&self) -> usize;

    /// The visible part of a page and how it is displayed. Pages count from 0.
    fn frame(&self, index: usize) -> Result<PageFrame>;

    /// The page as an image of this size.
    fn render(&self, index: usize, width: u32, height: u32) -> Result<Pixels>;

    /// The letters of a page in the order of the reader, without white space. Places are those of the image.
    fn letters(&self, index: usize, frame: PageFrame) -> Result<Vec<Letter>>;
}

impl PdfPages {
    /// Pages are read with PDFium's library at `path`. A process keeps the library that it bound first.
    ///
    /// # Errors
    /// `Internal` if the library is absent or lacks functions.
    pub fn with_pdfium(path: &Path) -> Result<Self> {
        Ok(Self { reader: ReaderKind::Pdfium(pdfium::PageLibrary::load(path)?) })
    }

    /// A page as a PNG image of this width in pixels. The image is smaller if it had more than 8,000,000 pixels. Pages
    /// count from 1.
    ///
    /// # Errors
    /// `Input` if there is no such page, `Encrypted` or `Damaged`.
    pub fn image(&self, bytes: &[u8], page: u32, width: u32) -> Result<Vec<u8>> {
        self.with_page(bytes, page, |reader, index| {
            let (width, height) = image::size(&reader.frame(index)?, width);
            image::png(&reader.render(index, width, height)?)
        })
    }

    /// Where the extracted text of a page is on it. `passages` are all parts of its text; other pages' text is not
    /// found. Pages count from 1.
    ///
    /// # Errors
    /// `Input` if there is no such page, `Encrypted` or `Damaged`.
    pub fn place(&self, bytes: &[u8], page: u32, passages: &[Passage]) -> Result<PlacedText> {
        self.with_page(bytes, page, |reader, index| {
            let frame = reader.frame(index)?;
            let mut letters = reader.letters(index, frame)?;
            letters.truncate(MAX_LETTERS);
            let lines = line_numbers(&letters);
            let (width, height) = frame.size();
            Ok(PlacedText { width, height, letters: place(&Passages::new(passages), &letters, &lines) })
        })
    }

    /// For each set of boxes the letters of a page in them, without white space, in the order of the reader: what somebody
    /// sees in these boxes of the image. Pages count from 1.
    ///
    /// # Errors
    /// `Input` if there is no such page, `Encrypted` or `Damaged`.
    pub fn letters_in(&self, bytes: &[u8], page: u32, sets: &[Vec<[f32; 4]>]) -> Result<Vec<String>> {
        self.with_page(bytes, page, |reader, index| {
            let letters = reader.letters(index, reader.frame(index)?)?;
            let read = |boxes: &Vec<[f32; 4]>| {
                let is_in = |letter: &&Letter| boxes.iter().any(|place| letter.is_in(*place));
                letters.iter().filter(is_in).map(|letter| letter.c).collect()
            };
            Ok(sets.iter().map(read).collect())
        })
    }

    fn with_page<T>(
        &self,
        bytes: &[u8],
        page: u32,
        read: impl FnOnce(&dyn PageReader, usize) -> Result<T>,
    ) -> Result<T> {
        error::check_header(bytes)?;
        let ReaderKind::Pdfium(library) = self.reader;
        guarded(|| {
            let document = library.open(bytes)?;
            let reader: &dyn PageReader = &document;
            let pages = reader.pages();
            let index = usize::try_from(page).unwrap_or(usize::MAX).checked_sub(1);
            match index.filter(|index| *index < pages) {
                Some(index) => read(reader, index),
                None => Err(error::no_page(page, pages)),
            }
        })
    }
}

/// Most letters of a page that are placed. Chosen, not measured: a dense page of a newspaper has 30,000.
const MAX_LETTERS: usize = 200_000;
