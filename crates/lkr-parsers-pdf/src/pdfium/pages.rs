//! Showing pages with PDFium.

use std::path::Path;

use lkr_parsers::Result;
use pdfium_render::prelude::{
    PdfBitmapFormat, PdfDocument, PdfPage, PdfPageRenderRotation, PdfPageTextChar, PdfRenderConfig,
    Pdfium as Library,
};

use super::{count, library, lines::CharDecoder, lines::is_rotated, page_index, rect};
use crate::{
    error,
    page::Rect,
    pages::{Letter, PageFrame, PageReader, Pixels},
};

/// The loaded library.
#[derive(Clone, Copy)]
pub(crate) struct PageLibrary(&'static Library);

impl std::fmt::Debug for PageLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageLibrary")
    }
}

impl PageLibrary {
    pub(crate) fn load(path: &Path) -> Result<Self> {
        library(path).map(Self)
    }

    /// Opens a file with the empty password.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<PdfDocument<'a>> {
        self.0.load_pdf_from_byte_slice(bytes, None).map_err(error::from_pdfium)
    }
}

impl PageReader for PdfDocument<'_> {
    fn pages(&self) -> usize {
        count(self).unwrap_or(0)
    }

    fn frame(&self, index: usize) -> Result<PageFrame> {
        let page = page(self, index)?;
        let visible = rect(&page.boundaries().bounding().map_err(error::from_pdfium)?.bounds);
        let quarter_turns = match page.rotation().map_err(error::from_pdfium)? {
            PdfPageRenderRotation::None => 0,
            PdfPageRenderRotation::Degrees90 => 1,
            PdfPageRenderRotation::Degrees180 => 2,
            PdfPageRenderRotation::Degrees270 => 3,
        };
        let is_valid = visible.is_finite() && visible.left < visible.right && visible.bottom < visible.top;
        is_valid.then_some(PageFrame::new(visible, quarter_turns)).ok_or_else(error::no_area)
    }

    fn render(&self, index: usize, width: u32, height: u32) -> Result<Pixels> {
        let size = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
        let config = PdfRenderConfig::new()
            .set_format(PdfBitmapFormat::BGRx)
            .set_fixed_size(size(width), size(height));
        let page = page(self, index)?;
        let bitmap = page.render_with_config(&config).map_err(error::from_pdfium)?;
        Ok(Pixels { width, height, rgba: bitmap.as_rgba_bytes() })
    }

    fn letters(&self, index: usize, frame: PageFrame) -> Result<Vec<Letter>> {
        let page = page(self, index)?;
        let text = page.text().map_err(error::from_pdfium)?;
        let (mut decoder, mut begins_word) = (CharDecoder::default(), true);
        let letter = |char: PdfPageTextChar<'_>| {
            let c = decoder.decode(char.unicode_value())?;
            if c.is_whitespace() {
                begins_word = true;
                return None;
            }
            let place = frame.place(bounds(&char)?)?;
            let begins_word = std::mem::take(&mut begins_word);
            Some(Letter { c, place, begins_word, is_vertical: is_rotated(&char) != frame.is_on_side() })
        };
        Ok(text.chars().iter().filter_map(letter).collect())
    }
}

fn page<'a>(document: &PdfDocument<'a>, index: usize) -> Result<PdfPage<'a>> {
    document.pages().get(page_index(index)).map_err(error::from_pdfium)
}

/// The place of a letter with the height of its font; that of its shape if the font has no height.
fn bounds(char: &PdfPageTextChar<'_>) -> Option<Rect> {
    let loose = char.loose_bounds().ok().map(|bounds| rect(&bounds));
    let has_area = |rect: &Rect| rect.left < rect.right && rect.bottom < rect.top;
    loose.filter(has_area).or_else(|| char.tight_bounds().ok().map(|bounds| rect(&bounds)))
}
