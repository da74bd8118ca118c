use pdf_oxide::rendering::{RenderOptions, render_page};

use super::OxideEngine;
use crate::render::{PageBitmap, PageRenderer, resolution};

impl PageRenderer for OxideEngine<'_> {
    fn render(&self, index: usize, max_pixels: u32) -> Option<PageBitmap> {
        let frame = self.frame(index)?;
        let dpi = resolution(frame.right - frame.left, frame.height(), max_pixels)?;
        let mut options = RenderOptions::with_dpi(dpi).as_raw();
        options.max_output_pixels = u64::from(max_pixels);
        let image = render_page(&self.document, index, &options).ok()?;
        Some(PageBitmap::from_rgba(image.width, image.height, dpi, &image.data))
    }
}
