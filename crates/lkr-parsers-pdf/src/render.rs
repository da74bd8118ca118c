//! Rendering pages as images, for OCR and to see whether pale text shows.

use crate::page::Rect;

/// Renders the pages of one open file.
pub(crate) trait PageRenderer {
    /// The page as a grey image of at most `max_pixels` pixels; `None` if it cannot be rendered. Pages count from 0.
    fn render(&self, index: usize, max_pixels: u32) -> Option<PageBitmap>;
}

/// A rendered page: one byte of grey for each pixel, row by row from the top.
pub(crate) struct PageBitmap {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) grey: Vec<u8>,
    pub(crate) dpi: u32,
}

/// The resolution of pages for OCR, in pixels per inch. See docs/studies.md#pdf-ocr.
const OCR_DPI: f32 = 200.0;

/// Text is unreadable below this resolution, so such pages are not rendered. See docs/studies.md#pdf-ocr.
const MIN_DPI: f32 = 20.0;

/// PDF lengths are in points. An inch has this many.
const POINTS_PER_INCH: f32 = 72.0;

impl PageBitmap {
    /// An image from pixels of four bytes: red, green, blue and alpha.
    pub(crate) fn from_rgba(width: u32, height: u32, dpi: u32, pixels: &[u8]) -> Self {
        Self { width, height, grey: pixels.as_chunks().0.iter().map(luma).collect(), dpi }
    }
}

/// The resolution for a page of this size in points, in pixels per inch, so that it has at most `max_pixels` pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are finite and positive")]
pub(crate) fn resolution(width: f32, height: f32, max_pixels: u32) -> Option<u32> {
    let area = width / POINTS_PER_INCH * (height / POINTS_PER_INCH);
    if !area.is_finite() || area <= 0.0 {
        return None;
    }
    let dpi = OCR_DPI.min((max_pixels as f32 / area).sqrt());
    (dpi >= MIN_DPI).then_some(dpi as u32)
}

/// The scale at which a page of 72 points per inch has this resolution.
pub(crate) const fn scale(dpi: u32) -> f32 {
    dpi as f32 / POINTS_PER_INCH
}

/// The lightness of a pixel, by the weights of BT.601.
fn luma([red, green, blue, _]: &[u8; 4]) -> u8 {
    let sum = u32::from(*red) * 77 + u32::from(*green) * 150 + u32::from(*blue) * 29;
    u8::try_from(sum >> 8).unwrap_or(u8::MAX)
}

/// The range of greys inside `area` of a rendered page whose visible part is `frame`; `None` if the image does not
/// have the shape of the frame or the area has no pixels.
pub(crate) fn contrast(image: &PageBitmap, frame: Rect, area: Rect) -> Option<u8> {
    let (width, height) = (image.width as f32, image.height as f32);
    let scale = width / (frame.right - frame.left);
    if (height / frame.height() / scale - 1.0).abs() > SHAPE_TOLERANCE {
        return None;
    }
    let columns = pixels((area.left - frame.left) * scale, (area.right - frame.left) * scale, image.width);
    let rows = pixels((frame.top - area.top) * scale, (frame.top - area.bottom) * scale, image.height);
    let row_length = usize::try_from(image.width).ok()?.max(1);
    let rows = image.grey.chunks_exact(row_length).skip(rows.start).take(rows.len());
    let greys = rows.flat_map(|row| row.get(columns.clone()).unwrap_or_default());
    let (low, high) = greys.fold((u8::MAX, 0), |(low, high), grey| (low.min(*grey), high.max(*grey)));
    high.checked_sub(low)
}

/// An image whose aspect ratio differs by more than this part from the frame's shows another part of the page.
const SHAPE_TOLERANCE: f32 = 0.03;

/// The whole pixels between two positions, cut to the image.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both ends are cut to the image")]
fn pixels(from: f32, to: f32, end: u32) -> std::ops::Range<usize> {
    let clamp = |position: f32| position.clamp(0.0, end as f32) as usize;
    clamp(from.floor())..clamp(to.ceil())
}
