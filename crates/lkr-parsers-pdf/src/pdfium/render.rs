use std::path::Path;

use pdfium_render::prelude::{PdfBitmapFormat, PdfDocument, PdfRenderConfig};

use super::{count, library, page_index};
use crate::{
    error,
    render::{PageBitmap, PageRenderer, resolution, scale},
};

/// Opens a file in which another engine found `pages` pages. On failure, returns the reason.
pub(super) fn open_renderer<'a>(
    path: &Path,
    bytes: &'a [u8],
    pages: usize,
) -> Result<PdfDocument<'a>, String> {
    let library = library(path).map_err(|error| error.to_string())?;
    let document = library.load_pdf_from_byte_slice(bytes, None).map_err(error::from_pdfium);
    let document = document.map_err(|error| format!("PDFium cannot open the file: {error}"))?;
    if count(&document) != Some(pages) {
        return Err("PDFium finds other pages in the file".to_owned());
    }
    Ok(document)
}

impl PageRenderer for PdfDocument<'_> {
    fn render(&self, index: usize, max_pixels: u32) -> Option<PageBitmap> {
        let page = self.pages().get(page_index(index)).ok()?;
        let dpi = resolution(page.width().value, page.height().value, max_pixels)?;
        let config =
            PdfRenderConfig::new().set_format(PdfBitmapFormat::BGRx).scale_page_by_factor(scale(dpi));
        let bitmap = page.render_with_config(&config).ok()?;
        let (width, height) = (u32::try_from(bitmap.width()).ok()?, u32::try_from(bitmap.height()).ok()?);
        Some(PageBitmap::from_rgba(width, height, dpi, &bitmap.as_rgba_bytes()))
    }
}
